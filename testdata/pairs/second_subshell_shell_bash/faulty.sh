#!/bin/bash
# Makes labels of a list: capitals, and no underscores. Small functions, used like those of other languages.
set -eu
capitals() { printf '%s' "${1^^}"; }
spaces() { printf '%s' "${1//_/ }"; }
while IFS=, read -r number name _; do
    label=$(spaces "$(capitals "box_${name}_no_$number")")
    printf '%s\n' "$label"
done < "$1" > "$2/labels"
cksum < "$2/labels"
