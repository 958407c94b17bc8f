#!/bin/bash
# Turns records into update statements, field by field. printf in a shell has no buffer that lives longer than the command.
set -eu
mapfile -t records < "$1"
for record in "${records[@]}"; do
    number=${record%%,*} value=${record##*,}
    name=${record#*,}
    printf 'UPDATE %s\n' "$number"
    printf '  NAME=%s\n' "${name%,*}"
    printf '  VALUE=%s\n' "$value"
    printf '  CHECKED=yes, by the nightly run\n'
    printf 'END;\n'
done > "$2"
echo "${#records[@]} records"
