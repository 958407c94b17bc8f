#!/bin/sh
# Counts the lines whose ninth field begins with P or Q. The pattern says: eight times something and a comma.
set -eu
perl -ne '$n++ if /^(.*?,){8}[PQ]/; END { print "$n lines\n" }' "$1"
