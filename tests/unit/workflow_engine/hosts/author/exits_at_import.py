"""A module that ends the process that imports it, as scripts do."""

import sys

sys.exit("a secret")
