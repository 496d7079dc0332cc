"""What keeps an outbox small and fast: compaction, the removal of old files, purges.

- compaction_rules: which partitions are worth a rewrite
- file_retention: how long the files of each log must stay
- maintain: compacts, forgets old heartbeats, removes unused files
- purge: removes whole days whose events have all ended, and remembers them
- purge_counts: what the days hold
- purge_records: a row in `outbox_purged` for each delivery that goes
- purge_request: the arguments of a purge, and its report
- purge_rules: which days may go
- removal: deletes rows with a marker that the invariants know
"""
