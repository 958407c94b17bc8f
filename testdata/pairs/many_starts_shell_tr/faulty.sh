#!/bin/sh
# Translates a list, entry by entry: $(... | tr) works in every shell.
set -eu
for entry in $(cat "$1"); do
    new=$(echo "$entry" | tr A-H a-h)
    echo "$new"
done > "$2"
echo "done"
