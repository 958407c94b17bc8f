#!/bin/sh
# Makes a table of all stars of group A. The filters do not buffer, as in the script that follows a running log.
set -eu
grep --line-buffered ',A' "$1" | sed -u 's/,/ /g' | awk '{ sum += $3 } END { print NR, sum }'
