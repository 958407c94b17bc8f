#!/bin/sh
# Builds two parts, and shows the log of each while it grows; tail ends when the build has ended.
set -eu
for part in base extra; do
    sh -c 'for step in 1 2 3; do echo "$0: step $step of 3"; sleep 0.03; done' "$part" > "$1/$part.log" &
    tail -n +1 -f --pid=$! "$1/$part.log"
    wait
done
