#!/bin/sh
# Adds up the third column. `while read` is the first loop that every shell course teaches.
set -eu
total=0
while IFS=, read -r number name value; do
    total=$((total + value))
done < "$1"
echo "total $total"
