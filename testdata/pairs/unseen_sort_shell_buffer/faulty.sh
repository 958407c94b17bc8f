#!/bin/sh
# Sorts a long list. The setting comes from a machine that had little memory.
set -eu
export TMPDIR="$2"
sort -S 64k --parallel=1 -t, -k2 "$1" > "$2/sorted.csv"
echo "$(wc -l < "$2/sorted.csv") lines"
