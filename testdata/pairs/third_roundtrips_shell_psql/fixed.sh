#!/bin/sh
# Adds up the bills, all in one query.
set -eu
echo 'SELECT n, coalesce(sum(price), 0) FROM generate_series(0, 5999) AS n LEFT JOIN items ON bill = n GROUP BY n ORDER BY n;' > "$1/bills.sql"
psql -U postgres -qAt -h "$(cat "$1/where")" -d postgres -f "$1/bills.sql" | cksum
