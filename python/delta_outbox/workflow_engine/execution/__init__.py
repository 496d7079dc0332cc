"""Runs the tasks that a relay has claimed.

- attempt_requests: what an attempt of a task is given
- attempt_results: what an attempt is on record
- code_check: whether the code is that of the workflows in force
- derivation_loop: writes what follows, beside the relay
- histories: what the log says of earlier attempts
- hosts_in_force: the hosts of a relay, and the workflows that they were held against
- link_check: whether the links of items can be signed
- task_policies: the delivery policies of tasks
- tasks: reads, attempts, answers
"""
