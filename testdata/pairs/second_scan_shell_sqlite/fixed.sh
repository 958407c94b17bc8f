#!/bin/sh
# Looks up 100 stars by their name, after an index was made.
set -eu
questions="SELECT count(*), sum(value) FROM stars WHERE name = '%c%05d';\n"
seq 100 | awk -v form="$questions" '{ printf form, 65 + $1 % 8, $1 * 97 }' > "$1/questions.sql"
sqlite3 "$1/stars.db" 'CREATE INDEX by_name ON stars (name)'
sqlite3 "$1/stars.db" < "$1/questions.sql" | awk -F'|' '{ found += $1; sum += $2 } END { print found, sum }'
