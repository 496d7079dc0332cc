"""A Delta table as a log: numbered appends, the history of its commits, what is on the disk."""
