#!/bin/bash
# Turns records into update statements.
set -eu
awk -F, -v out="$2" '
    { printf "UPDATE %s\n  NAME=%s\n  VALUE=%s\n  CHECKED=yes, by the nightly run\nEND;\n", $1, $2, $3 > out }
    END { print NR " records" }' "$1"
