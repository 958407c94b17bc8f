#!/bin/sh
# Measures the disk. dd says the rate on standard error.
set -eu
dd if="$1" of=/dev/null bs=4M iflag=direct
echo "$(stat -c %s "$1") bytes"
