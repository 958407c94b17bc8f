#!/bin/sh
# Has four devices made ready by the driver of each; a failure should be easy to find in the log, so one by one.
set -eu
for device in camera dome filter mount; do
    sh -c "sleep 0.25; echo $device ready" > "$1/$device.state"
done
cat "$1"/*.state
