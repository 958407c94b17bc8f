#!/bin/bash
# Notes each delivery in a ledger of its own, which the backup does not lock, and which is added to the other at night.
set -eu
for delivery in apples pears plums cherries; do
    (
        flock 9
        echo "$delivery" >> "$1.today"
    ) 9>> "$1.today"
done
echo "$(wc -l < "$1.today") deliveries"
