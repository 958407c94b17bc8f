#!/bin/sh
# Makes update statements out of record files: one cat and one awk for all.
set -eu
cd "$1"
cat record.* | awk -F, '{ printf "UPDATE %s SET VALUE=%s;\n", $1, $3 }' > update.txt
echo "$(grep -c UPDATE update.txt) records"
