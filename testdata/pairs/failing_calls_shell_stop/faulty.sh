#!/bin/sh
# Counts the numbers whose squares end in 1. Whoever wants it to end early makes the stop file.
set -eu
count=0 number=0
while [ "$number" -lt 4000 ] && [ ! -e "$1" ]; do
    [ $((number * number % 10)) -ne 1 ] || count=$((count + 1))
    number=$((number + 1))
done
echo "$count of $number"
