#!/bin/sh
# Adds up prices by their keys, on a machine that once had little memory.
set -eu
sqlite3 "$1" <<'QUERY'
PRAGMA cache_size = 10;
SELECT sum(price) FROM orders JOIN goods ON goods.code = orders.code;
QUERY
