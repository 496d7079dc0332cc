"""`python -m delta_outbox.cli`: the command `outbox`, wherever its script lies."""

from __future__ import annotations

import sys

from delta_outbox.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
