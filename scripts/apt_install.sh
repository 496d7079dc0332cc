#!/bin/sh
# Install one Debian or Ubuntu package: the first of those named that this release has.
# Exit 1 without a word where that is not possible (no apt-get, or neither root nor sudo without a
# password): the caller knows what to advise. Nothing is started, now or at the next boot: who needs
# a server runs one of its own, and the machine's may not be ours to start.
set -eu

command -v apt-get >/dev/null 2>&1 || exit 1
if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    exit 1
fi

# Two test processes may need a server at the same time, and apt-get waits for nobody.
exec 9<"$0"
flock 9

log=$(mktemp)
policy="" # a file of ours to remove
clean() {
    rm -f "$log"
    # shellcheck disable=SC2086 # as_root is empty or two words
    [ -z "$policy" ] || $as_root rm -f "$policy"
}
trap clean EXIT
trap 'exit 1' HUP INT TERM

run() {
    # shellcheck disable=SC2086 # as_root is empty or two words
    if ! $as_root env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        return 1
    fi
}

# Debian asks this file before a package starts its service, and 101 forbids it. Where there is one,
# as in images of containers, it stays as it is.
forbid_services() {
    [ -e /usr/sbin/policy-rc.d ] && return
    policy=/usr/sbin/policy-rc.d
    run sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy"
}

enabled_units() {
    find /etc/systemd/system -path '*.wants/*' \( -name '*.service' -o -name '*.socket' \) 2>/dev/null || :
}

# Packages have their services, and those of what they need, started at every boot. What was so
# before stays so.
disable_units_but() {
    command -v systemctl >/dev/null 2>&1 || return 0
    for link in $(enabled_units); do
        case " $1 " in
            *"$link"*) ;;
            *) run systemctl disable "${link##*/}" || : ;;
        esac
    done
}

run apt-get -qq update
for package in "$@"; do
    if apt-cache show "$package" >/dev/null 2>&1; then
        echo "setup: installing $package"
        # Minimal images lack the folder, and then the package's links to its manual fail.
        run mkdir -p /usr/share/man/man1
        forbid_services
        before=$(enabled_units)
        run apt-get -qq install --yes --no-install-recommends "$package"
        disable_units_but "$before"
        exit 0
    fi
done
exit 1
