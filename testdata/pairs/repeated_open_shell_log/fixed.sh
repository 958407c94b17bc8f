#!/bin/sh
# Lists the cubes up to 1500.
set -eu
awk -v out="$1" 'BEGIN { for (n = 1; n <= 1500; n++) printf "%d %.0f\n", n, n * n * n > out; print n - 1, "lines" }'
