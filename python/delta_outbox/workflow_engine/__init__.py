"""Runs workflows on the logs. No relay does so yet.

- derivation: what follows a start event, and the ending of a task
- derived_events: writes what follows, each event once (`DerivedEvents.step`)
- hosts: the processes in which calls run
- known_rows: which instances and identifiers the log has, or ever had
- range_reader: reads the start events and endings of a numbered write
- task_reader: reads tasks, and tells them from rows that only look so (`TaskReader.read`)
- write_range: which versions a numbered write is made of
"""
