#!/bin/sh
# Gets two packages, from the first mirror that has them. Nobody noticed that the first one is gone.
set -eu
port=$(cat "$1")
for package in bread butter; do
    for mirror in 127.0.0.1:9 "127.0.0.1:$port"; do
        curl -sf --retry 1 --retry-delay 1 --retry-connrefused "http://$mirror/$package" && break
    done
done
