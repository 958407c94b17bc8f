#!/bin/sh
# Compresses both halves of the sky for the archive, in a loop, as there may be more of them one day.
set -eu
for half in east west; do
    gzip -9 -k "$1/$half.dat"
done
echo "$(cat "$1/east.dat.gz" "$1/west.dat.gz" | wc -c) bytes"
