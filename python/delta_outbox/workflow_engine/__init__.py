"""Runs workflows on the logs. The command line does not yet.

- derivation: what follows a start event, and the ending of a task
- derived_events: writes what follows, each event once (`DerivedEvents.step`)
- execution: runs the tasks that a relay has claimed
- hosts: the processes in which calls run
- items: answers to items that wait for a person
- known_rows: which instances and identifiers the log has, or ever had
- range_reader: reads the start events and endings of a numbered write
- task_reader: reads tasks, and tells them from rows that only look so (`TaskReader.read`)
- workflow_plans: the plans of `workflows`, each read once
- write_range: which versions a numbered write is made of
"""
