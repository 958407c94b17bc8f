#!/bin/bash
# Makes labels of a list: capitals, and no underscores. The shell does it in place.
set -eu
while IFS=, read -r number name _; do
    label="box_${name}_no_$number"
    label=${label^^}
    printf '%s\n' "${label//_/ }"
done < "$1" > "$2/labels"
cksum < "$2/labels"
