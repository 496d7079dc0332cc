"""Claims, from the choice to the ending.

- chooser: which claims begin: at most K in flight, with disjoint order scopes
- decided: endings that go on record with the next append
- flight: claims in flight, each published on a thread of its own
"""
