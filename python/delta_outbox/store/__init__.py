"""The store contract over the logs: append, retrieve, claim, end; and what that needs.

- apply_commands: replays, releases, completions and extensions become transitions, pauses a
  numbered write
- command_arguments: what commands say, which anybody may have written by hand
- completions: answers to items that wait for a person become their endings
- destination_states: which destinations are paused, and whose circuit breaker is open
- epochs: how many lanes there are, and the two plans by which that changes
- expired_claims: whose claims may be ended, and how they end
- extensions: items that wait for a person expire later
- heartbeat: which relays are alive, by the log `outbox_relays`
- lane_change: one epoch ends and the next begins, step by step
- lane_logs: the logs of all lanes of the epoch, as one relay sees them
- lanes: which lane an event belongs to
- leases: how long a claim of others was seen unchanged, by our own clock
- open_deliveries: asks a read view what is eligible, what ends unsent, what is claimed
- opening: the session, the logs that are created or checked, and the SQL of an outbox
- policies: the delivery policies in force, and what keeps new ones out
- presence: which relays of this machine are alive, by locks on files
- store: the store itself
- transition_log: the log of one lane: append at an expected sequence, or lose
- unknown_results: which destinations are asked what they got, and what follows
"""
