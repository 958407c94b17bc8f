"""Stores visits in a database, all in one transaction."""

import sqlite3
import sys

database = sqlite3.connect(sys.argv[1])
database.execute("CREATE TABLE visits (page INTEGER, visitor INTEGER)")
with database:
    for number in range(400):
        database.execute("INSERT INTO visits VALUES (?, ?)", (number % 17, number * 7919 % 101))
print(*database.execute("SELECT count(*), sum(visitor) FROM visits").fetchone())
