"""Draws 90 plots. Each reads the configuration file and counts itself there, as if it were alone."""

import math
import sys


def plot(number: int) -> float:
    with open(sys.argv[1]) as settings:
        text = settings.read()
    height = max(math.sin(x / 10) * number for x in range(200))
    with open(sys.argv[1], "w") as settings:
        settings.write(f"plots = {int(text[8:14]) + 1:06}{text[14:]}")
    return height


print(round(sum(plot(number) for number in range(90)), 3))
