#!/bin/sh
# Makes a table of all stars of group A.
set -eu
grep ',A' "$1" | sed 's/,/ /g' | awk '{ sum += $3 } END { print NR, sum }'
