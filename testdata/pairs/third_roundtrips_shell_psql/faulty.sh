#!/bin/sh
# Adds up the bills. The query for one bill was there already.
set -eu
seq 0 5999 | sed 's/.*/SELECT &, coalesce(sum(price), 0) FROM items WHERE bill = &;/' > "$1/bills.sql"
psql -U postgres -qAt -h "$(cat "$1/where")" -d postgres -f "$1/bills.sql" | cksum
