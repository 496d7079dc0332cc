#!/bin/sh
# Make sure that the Java which Spark will find is 17 or newer; install it where that needs no question.
set -eu

here=$(dirname "$0")

# Spark takes JAVA_HOME if it is set, and the java of the PATH otherwise; so does this check.
java_major() {
    if [ -n "${JAVA_HOME:-}" ]; then java="$JAVA_HOME/bin/java"; else java=java; fi
    # 17.0.15 is 17; 1.8.0_412 is 8. No Java, or macOS's placeholder for it, is 0.
    major=$("$java" -version 2>&1 |
        sed -n 's/^.* version "\([0-9]*\)\.\{0,1\}\([0-9]*\).*$/\1 \2/p' |
        awk 'NR == 1 { print ($1 == 1 ? $2 : $1) }')
    echo "${major:-0}"
}

[ "$(java_major)" -lt 17 ] || exit 0

if [ -n "${JAVA_HOME:-}" ]; then
    echo "setup: Spark needs Java 17 or newer, and JAVA_HOME names none: $JAVA_HOME." \
        "Point it to a Java 17 or 21, or unset it." >&2
    exit 1
fi

if sh "$here/apt_install.sh" openjdk-17-jre-headless openjdk-21-jre-headless &&
    [ "$(java_major)" -ge 17 ]; then
    exit 0
fi

echo "setup: Spark needs Java 17 or newer, and none is on the PATH. Install it" \
    "(Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless; Fedora: sudo dnf install" \
    "java-21-openjdk-headless; macOS: brew install --cask temurin@17), then run make again." >&2
exit 1
