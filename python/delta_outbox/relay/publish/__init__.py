"""How a claim is sent: the driver's side (publishing), and what a worker runs (slice).

- calls: cuts the deliveries of a slice into calls of a publisher
- contents: reads payloads from the files of the event log
- deadline: the deadline of a claim, carried from the driver to its workers
- event_places: where in the event log the rows of deliveries lie
- garbage_collection: makes the search for unreachable cycles rarer while many objects are made
- producer_slots: a name to send under for each claim in flight
- publisher_modules: lets workers import publishers from where the driver has them
- publishing: publishes one claim: one Spark action, one slice per worker
- publishing_pause: pauses a relay whose machine cannot begin to publish
- routing: slice, key, order scope and route of each delivery
- rows: the rows of a slice, and the events that they are
- slice: publishes a slice in a worker: once, in order, before the deadline
- tracing: a span per publish attempt
- workers: the workers of one relay: started once, and whether they have begun
"""
