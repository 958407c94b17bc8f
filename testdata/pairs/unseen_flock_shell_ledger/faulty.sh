#!/bin/bash
# Notes each delivery in the ledger. All that write it take its lock, and so does the backup, which copies it slowly.
set -eu
for delivery in apples pears plums cherries; do
    (
        flock 9
        echo "$delivery" >> "$1"
    ) 9< "$1"
done
echo "$(wc -l < "$1") deliveries"
