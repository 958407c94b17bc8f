#!/bin/sh
# Gets two packages, from the mirror that there is.
set -eu
port=$(cat "$1")
for package in bread butter; do
    curl -sf --retry 1 --retry-delay 1 --retry-connrefused "http://127.0.0.1:$port/$package"
done
