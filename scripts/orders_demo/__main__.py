"""Runs the demo: `python -m scripts.orders_demo --orders 100 --seed 7`."""

import signal
import sys

from scripts.orders_demo.story import main

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: end in order
    sys.exit(main())
