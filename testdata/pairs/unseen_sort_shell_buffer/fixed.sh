#!/bin/sh
# Sorts a long list, in memory.
set -eu
export TMPDIR="$2"
sort -S 256M --parallel=1 -t, -k2 "$1" > "$2/sorted.csv"
echo "$(wc -l < "$2/sorted.csv") lines"
