#!/bin/bash
# Counts data files. The test keeps the pattern itself from being counted where nothing matches, and is done for all.
set -eu
count=0
for file in "$1"/*.dat; do
    if [ -f "$file" ]; then
        count=$((count + 1))
    fi
done
echo "$count files"
