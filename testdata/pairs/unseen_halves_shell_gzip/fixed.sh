#!/bin/sh
# Compresses both halves of the sky for the archive, at the same time.
set -eu
for half in east west; do
    gzip -9 -k "$1/$half.dat" &
done
wait
echo "$(cat "$1/east.dat.gz" "$1/west.dat.gz" | wc -c) bytes"
