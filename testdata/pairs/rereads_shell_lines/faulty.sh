#!/bin/bash
# Adds up the values of the items that begin with A: a line at a time, as scripts do.
set -eu
total=0
while IFS=, read -r number name value; do
    case $name in A*) total=$((total + value)) ;; esac
done < "$1"
echo "total $total"
