#!/bin/sh
# Translates a list.
set -eu
tr A-H a-h < "$1" > "$2"
echo "done"
