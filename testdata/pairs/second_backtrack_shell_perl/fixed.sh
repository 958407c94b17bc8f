#!/bin/sh
# Counts the lines whose ninth field begins with P or Q. What is before a comma is no comma, so there is nothing to try.
set -eu
perl -ne '$n++ if /^([^,]*,){8}[PQ]/; END { print "$n lines\n" }' "$1"
