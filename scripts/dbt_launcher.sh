#!/bin/sh
# dbt for this project, written by `make setup`: it finds the outbox, takes its lock or the served
# address, and runs dbt unchanged. The same elsewhere: `outbox dbt ...`.
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 2
# -P: a folder named like one of our imports in the working folder must not shadow it.
exec "$here/python" -P -c '
import sys

from delta_outbox.cli.dbt_launcher import main

sys.argv[0] = "dbt"
sys.exit(main())
' "$@"
