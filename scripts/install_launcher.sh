#!/bin/sh
# Put our dbt launcher where pip puts dbt's own; a later pip may have put that one back.
set -eu

cd "$(dirname "$0")/.."
cmp -s scripts/dbt_launcher.sh .venv/bin/dbt && exit 0
# A new file, not new contents: somebody may be running the old one.
cp scripts/dbt_launcher.sh .venv/bin/dbt.new
chmod 755 .venv/bin/dbt.new
mv -f .venv/bin/dbt.new .venv/bin/dbt
