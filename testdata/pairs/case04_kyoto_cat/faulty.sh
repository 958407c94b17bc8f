#!/bin/sh
# Makes update statements out of record files: one shell variable at a time, as a script grows that was made by hand.
set -eu
cd "$1"
for file in record.*; do
    record=$(cat "$file")
    echo "UPDATE ${record%%,*} SET VALUE=${record##*,};"
done > update.txt
echo "$(grep -c UPDATE update.txt) records"
