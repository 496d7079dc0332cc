#!/bin/sh
# Install one Debian or Ubuntu package: the first of those named that this release has.
# Exit 1 without a word where that is not possible (no apt-get, or neither root nor sudo without a
# password): the caller knows what to advise.
set -eu

command -v apt-get >/dev/null 2>&1 || exit 1
if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    exit 1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

run() {
    # shellcheck disable=SC2086 # as_root is empty or two words
    if ! $as_root env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        return 1
    fi
}

run apt-get -qq update
for package in "$@"; do
    if apt-cache show "$package" >/dev/null 2>&1; then
        echo "setup: installing $package"
        # Minimal images lack the folder, and then the package's links to its manual fail.
        run mkdir -p /usr/share/man/man1
        run apt-get -qq install --yes --no-install-recommends "$package"
        exit 0
    fi
done
exit 1
