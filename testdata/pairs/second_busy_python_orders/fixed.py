"""Three tills book orders in one database. The price is known before the transaction begins."""

import os
import sqlite3
import sys
import urllib.request
from pathlib import Path

database, server = sys.argv[1], f"http://127.0.0.1:{Path(sys.argv[2]).read_text().strip()}/"


def price(article):
    with urllib.request.urlopen(server + article) as answer:
        return int(answer.read())


def till(number):
    connection = sqlite3.connect(database, timeout=20, isolation_level=None)
    for order in range(2):
        article = f"article{number}{order}"
        amount = price(article)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO orders VALUES (?, ?)", (article, amount))
        connection.execute("COMMIT")
    connection.close()


with sqlite3.connect(database) as connection:
    connection.execute("CREATE TABLE orders (article TEXT, price INTEGER)")
connection.close()
for number in range(3):
    if os.fork() == 0:
        till(number)
        os._exit(0)
for _ in range(3):
    os.wait()
print(*sqlite3.connect(database).execute("SELECT count(*), sum(price) FROM orders").fetchone())
