"""Claims, from the choice to the ending.

- chooser: which claims begin: at most K in flight, with disjoint order scopes
- flight: claims in flight, each published on a thread of its own
- lost_results: what a destination says of results that are unknown
"""
