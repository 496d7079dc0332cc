#!/bin/sh
# Print the first Python that can run this project; PYTHON=/path/to/python overrides the search.
set -eu

usable() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

if [ -n "${PYTHON:-}" ]; then
    if usable "$PYTHON"; then
        echo "$PYTHON"
        exit 0
    fi
    echo "setup: PYTHON must name a Python 3.11, 3.12 or 3.13. Got: $PYTHON" >&2
    exit 1
fi

for candidate in python3 python3.11 python3.12 python3.13; do
    if usable "$candidate"; then
        command -v "$candidate"
        exit 0
    fi
done

echo "setup: no Python 3.11, 3.12 or 3.13 here; install one" \
    "(Debian, Ubuntu: apt-get install python3 python3-venv; macOS: brew install python@3.13)" \
    "or name it: make setup PYTHON=/path/to/python" >&2
exit 1
