"""`make demo-orders`: the example of orders for real, with processes that live and die.

The modules of examples/orders are scripts and no package: they are found from their folder.
"""

import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLE: Final = ROOT / "examples" / "orders"

sys.path.insert(0, str(EXAMPLE))
