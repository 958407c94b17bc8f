#!/bin/sh
# Counts the numbers whose squares end in 1. Whoever wants it to end early sends SIGTERM.
set -eu
count=0 number=0
trap 'echo "$count of $number"; exit' TERM
while [ "$number" -lt 4000 ]; do
    [ $((number * number % 10)) -ne 1 ] || count=$((count + 1))
    number=$((number + 1))
done
echo "$count of $number"
