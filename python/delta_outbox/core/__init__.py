"""What every room may use: values, rules of text, names. No Spark.

- arrow: masks, sizes and broken texts of Arrow columns
- byte_bounds: how many bytes of events are held in memory at once
- clock: the time, as a parameter
- disk: has files and folders written to the disk
- errors: every error, with its code and its remedy
- failpoints: points at which a test can end a process
- globs: shell globs on event types
- hashing: finds a text that is there twice among many
- horizon: which days of the event log are asked for the id of a new event
- instants: to and from microseconds since 1970
- json_pointers: their parts
- literals: any value as an SQL literal
- redaction: makes texts of errors printable, short, and free of secrets
- reserved_names: how names begin that belong to workflows
- secrets: which values of the settings are secrets, and what must not show them
- setting_rules: what a value of the settings must be
- settings: the settings as values, with their defaults
- tables: the relations by name, and the format of the logs
- version: of this release
"""
