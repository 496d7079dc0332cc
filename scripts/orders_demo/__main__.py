"""Runs the demo: `python -m scripts.orders_demo --orders 100 --seed 7`."""

import sys

from scripts.orders_demo.story import main

if __name__ == "__main__":
    sys.exit(main())
