"""What a delivery is and becomes. Pure.

- claim_policies: the policy of each delivery of a claim
- claims: makes claims, the rows that begin and end them, and the order of deliveries
- endings: how a claim ends for each delivery; what makes a suspect
- endings_by_column: the endings of a claim, stored by columns
- order_scopes: which deliveries wait for each other
- policy: which policy an event type has, its pauses, routes and message keys
- policy_columns: what each cell of a policy may hold
- results: what a publisher answers for an event
- results_by_column: the results of a claim, stored by columns
- states: states, legal transitions, reasons
"""
