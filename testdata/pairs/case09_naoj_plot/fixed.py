"""Draws 90 plots; the configuration file is read before the first and written after the last."""

import math
import sys


def plot(number: int) -> float:
    return max(math.sin(x / 10) * number for x in range(200))


with open(sys.argv[1]) as settings:
    text = settings.read()
heights = [plot(number) for number in range(90)]
with open(sys.argv[1], "w") as settings:
    settings.write(f"plots = {int(text[8:14]) + len(heights):06}{text[14:]}")
print(round(sum(heights), 3))
