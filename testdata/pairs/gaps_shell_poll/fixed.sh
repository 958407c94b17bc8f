#!/bin/sh
# Sorts a list in the background and goes on when it is done.
set -eu
sort -t, -k2 "$1" > "$2/sorted.csv" &
wait $!
echo "$(grep -c , "$2/sorted.csv") lines"
