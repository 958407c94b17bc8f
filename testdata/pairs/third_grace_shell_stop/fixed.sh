#!/bin/sh
# Stops a worker that refreshes the prices once a second, after its first round, and waits until it is gone.
set -eu
cat > "$1/worker" <<'WORKER'
trap 'kill "$pause"; echo "worker: stopped"; exit 0' TERM
while :; do
    echo "worker: prices refreshed"
    sleep 1 &
    pause=$!
    : > "$1/ready"
    wait "$pause"
done
WORKER
sh "$1/worker" "$1" &
worker=$!
until [ -e "$1/ready" ]; do
    sleep 0.05
done
kill "$worker"
wait "$worker"
