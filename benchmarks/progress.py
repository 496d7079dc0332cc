"""What a benchmark says while it runs."""

from __future__ import annotations


def say(text: str) -> None:
    """Print a line for whoever waits.

    Args:
        text: what to say.
    """
    print(f"benchmarks: {text}", flush=True)
