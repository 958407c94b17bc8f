"""Adds up 250 orders. price_of() opens the table itself, so that it can be called from anywhere."""

import sys


def price_of(item: int) -> int:
    with open(sys.argv[1], "rb") as table:
        text = table.read()
    start = text.index(b"\n%d," % item)
    return int(text[start : text.index(b"\n", start + 1)].split(b",")[2])


print("total", sum(price_of(order * 7919 % 64000) for order in range(1, 251)))
