"""What each destination may be asked now, and what is checked before it is.

- breaker: a circuit breaker; pure
- destinations: which destinations are needed, opened and checked
- isolation: pause, breaker, rates and workers of each destination
- pace: how much a claim may hold, by how long the last ones took; pure
- payload_formats: the formats of CloudEvents that policies ask for
- rates: token buckets; pure
- task_runner: what a relay asks of whoever runs the tasks of workflows
"""
