#!/bin/sh
# Adds up the sizes of all objects of a repository.
set -eu
git -C "$1" rev-list --objects --all | cut -d' ' -f1 | while read -r name; do
    git -C "$1" cat-file -s "$name"
done | awk '{ sum += $1 } END { print NR, "objects,", sum, "bytes" }'
