#!/bin/sh
# Builds two parts, and shows the log of each while it grows; the pipe ends with the build.
set -eu
for part in base extra; do
    sh -c 'for step in 1 2 3; do echo "$0: step $step of 3"; sleep 0.03; done' "$part" | tee "$1/$part.log"
done
