"""Adds up 250 orders. price_of() opens the table itself, so that it can be called from anywhere."""

import sys


def price_of(item: int) -> int:
    with open(sys.argv[1]) as table:
        for line in table:
            number, _, price = line.split(",")
            if int(number) == item:
                return int(price)
    return 0


print("total", sum(price_of(order * 7919 % 16000) for order in range(250)))
