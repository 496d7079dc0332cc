"""The scenarios that the kit plays, each with the checks that judge what was seen.

- age: an event that gets too old
- budget: events that fail at every attempt
- claiming: the first claim, and the fields of a claim
- content: what an event is made of, and what leaves with it
- ending: how a claim ends, and what stays for ever
- identity: one id, appended several times
- lease: workers that go away, and answers that come late
- life: ten events from their append to their end
- operators: kills and replays
- order: keys whose events fail, wait and are held
- race: several relays on one backlog
- steps: which transitions are legal
- tampering: somebody rewrites what is on record
"""
