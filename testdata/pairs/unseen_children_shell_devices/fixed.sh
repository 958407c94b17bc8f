#!/bin/sh
# Has four devices made ready by the driver of each, all at the same time.
set -eu
for device in camera dome filter mount; do
    sh -c "sleep 0.25; echo $device ready" > "$1/$device.state" &
done
wait
cat "$1"/*.state
