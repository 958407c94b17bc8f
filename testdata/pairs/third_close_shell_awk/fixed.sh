#!/bin/sh
# Splits a list into a file for each group, all of which stay open.
set -eu
mkdir "$1/groups"
awk -F, -v folder="$1/groups" '{
    file = folder "/" substr($2, 1, 3)
    print > file
}' "$1/list.csv"
cat "$1"/groups/* | cksum
