"""Asks the price of each item of an order, one request after another, as the example of the service does."""

import sys
import urllib.request
from pathlib import Path

server = "http://127.0.0.1:" + Path(sys.argv[1]).read_text().strip()


def price(item):
    with urllib.request.urlopen(f"{server}/item{item}") as answer:
        return int(answer.read())


print("total", sum(map(price, range(6))))
