"""What follows: from start events and endings of tasks to the events of the next numbered write.

Pure: rows of the log in, rows of the log out. Whoever writes does this, in order:

1. `derive` makes the rows that follow, each with its number within its instance.
2. The log is asked what it has of their instances and ids.
3. `admit` keeps those that are the next row of their instance.

Two writers that have read the same make the same rows, and what was written before is not made
again.

- events: the rows of the log that are read and made
- follow_ups: what follows the ending of a task; `derive` and `admit`
- item_events: what tells that items are open, or due
- moves: where an operator lets an open instance go on
- plans: the versions of workflows that a numbered write keeps
- starts: which instance a start event begins, or why none
"""
