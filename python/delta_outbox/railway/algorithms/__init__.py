"""The algorithm of each category, as a generator that yields every step it needs."""
