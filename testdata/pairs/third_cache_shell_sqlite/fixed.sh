#!/bin/sh
# Adds up prices by their keys, and keeps in memory what it has read.
set -eu
sqlite3 "$1" <<'QUERY'
PRAGMA cache_size = -64000;
SELECT sum(price) FROM orders JOIN goods ON goods.code = orders.code;
QUERY
