"""Runs the code of authors: processes, and what is known of each call in the end.

- answers: what may be said of a value or an error
- attempts: makes one attempt; the algorithm runs here, its calls in hosts
- call: what a host is asked, and what is known of it in the end
- host: the process itself
- host_process: a host as its parent sees it
- parent_death: nothing runs without its parent
- places: how many attempts may be claimed
- pool: all hosts of a relay; begin here
"""
