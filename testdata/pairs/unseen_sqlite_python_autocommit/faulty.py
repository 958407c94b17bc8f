"""Stores visits in a database. With autocommit, nothing can be forgotten."""

import sqlite3
import sys

database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("CREATE TABLE visits (page INTEGER, visitor INTEGER)")
for number in range(400):
    database.execute("INSERT INTO visits VALUES (?, ?)", (number % 17, number * 7919 % 101))

print(*database.execute("SELECT count(*), sum(visitor) FROM visits").fetchone())
