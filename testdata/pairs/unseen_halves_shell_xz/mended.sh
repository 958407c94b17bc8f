#!/bin/sh
# Compresses both halves of the sky for the archive, at the same time.
set -eu
for half in east west; do
    xz -T1 -k "$1/$half.dat" &
done
wait
echo "$(cat "$1/east.dat.xz" "$1/west.dat.xz" | wc -c) bytes"
