"""Runs workflows on the logs.

- deadlines: when tasks expire that operators let expire later (`Deadlines.in_force`)
- derivation: what follows a start event, and the ending of a task
- derived_events: writes what follows, each event once (`DerivedEvents.step`)
- due_items: which open items are due (`DueItems.after`)
- execution: runs the tasks that a relay has claimed
- four_eyes: who may not answer an item (`another_person`)
- hosts: the processes in which calls run
- instances: what has become of an instance, how it is ended or waits longer (`Instances`)
- item_answers: which answers to items count, and what who answers is told (`Answers`)
- item_decisions: what the code of authors says about items
- item_deliveries: where items stand (`ItemDeliveries`)
- item_history: what has happened to an item (`history`)
- item_holds: who takes care of items, as the people who look at them say (`Holds`)
- item_links: signed links to items (`Links`)
- items: what people ask of items that wait for them (`Items`)
- known_rows: which instances and identifiers the log has, or ever had
- migrations: which open instances are moved to another version, and to which task
- move_reader: reads what operators ask of instances whose open tasks they end
- opening: what a relay is given (`task_runner`)
- range_reader: reads the start events and endings of a numbered write
- task_reader: reads tasks, and tells them from rows that only look so (`TaskReader.read`)
- task_requests: what operators ask of open tasks, and which are meant
- workflow_plans: the plans of `workflows`, each read once
- workflow_states: the states of instances
- workflow_views: questions to dbt's views of workflows
- write_range: which versions a numbered write is made of
"""
