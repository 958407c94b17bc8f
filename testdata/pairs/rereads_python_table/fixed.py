"""Adds up 250 orders; the table of prices is read once."""

import sys

prices = {}
with open(sys.argv[1], buffering=65536) as table:
    for line in table:
        number, _, price = line.split(",")
        prices[int(number)] = int(price)
print("total", sum(prices.get(order * 7919 % 64000, 0) for order in range(1, 251)))
