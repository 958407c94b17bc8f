#!/bin/bash
# Adds up the values of the items that begin with A.
set -eu
awk -F, '$2 ~ /^A/ { total += $3 } END { print "total", total }' "$1"
