#!/bin/sh
# Adds up the sizes of all objects of a repository; one git answers for all of them.
set -eu
git -C "$1" rev-list --objects --all | cut -d' ' -f1 | git -C "$1" cat-file --batch-check='%(objectsize)' |
    awk '{ sum += $1 } END { print NR, "objects,", sum, "bytes" }'
