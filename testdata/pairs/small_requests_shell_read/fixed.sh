#!/bin/sh
# Adds up the third column.
set -eu
awk -F, '{ total += $3 } END { print "total", total }' "$1"
