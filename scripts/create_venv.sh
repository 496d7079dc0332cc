#!/bin/sh
# Make .venv with the exact versions of constraints.txt. Safe to run again.
set -eu

cd "$(dirname "$0")/.."

# Neither may reach into the new environment.
unset PYTHONPATH PYTHONHOME

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    python=$(sh scripts/find_python.sh)
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    # Debian and Ubuntu keep this part of Python in a package of its own.
    if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 &&
        ! sh scripts/apt_install.sh "python$version-venv"; then
        echo "setup: $python cannot make a virtual environment." \
            "Install that part of it (Debian, Ubuntu: sudo apt-get install python$version-venv)," \
            "then run make again." >&2
        exit 1
    fi
    "$python" -m venv --clear .venv
fi

echo "setup: installing the Python packages into .venv (Spark alone is 450 MB; minutes the first time)"
# Compiled below, on all cores and without what is never imported.
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-compile \
    --use-pep517 --constraint constraints.txt --editable '.[demo,dev]'

# Here, and not at the first import: where Python may keep nothing that it compiles, as in many
# containers, each command would compile for seconds. What does not compile is imported by nobody,
# or says so itself.
packages=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
.venv/bin/python -m compileall -q -j 0 -x '/(tests?|moto|networkx|pip|setuptools)/' "$packages" || true

sh scripts/install_launcher.sh
touch .venv/.installed
