#!/bin/sh
# Lists the cubes up to 1500. Each line is appended where it is made, which is easy to write and to extend.
set -eu
number=1
while [ "$number" -le 1500 ]; do
    echo "$number $((number * number * number))" >> "$1"
    number=$((number + 1))
done
echo "$((number - 1)) lines"
