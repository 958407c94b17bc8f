# Usage: check.py FOLDER. Compares the answers of a run with those of the other database, numbers to nine digits.
import csv
import math
import sys
from pathlib import Path


def alike(one, other):
    try:
        return math.isclose(float(one), float(other), rel_tol=1e-9)
    except ValueError:
        return one == other


def rows(file):
    with open(file, newline="") as opened:
        # A row of one NULL is an empty line.
        return [row or [""] for row in csv.reader(opened)]


for expected in sorted(Path(sys.argv[1], "expected").iterdir()):
    wanted, found = rows(expected), rows(Path(sys.argv[1], "answers", expected.name))
    if len(wanted) != len(found):
        sys.exit(f"{expected.name}: {len(found)} rows and not {len(wanted)}")
    for number, (one, other) in enumerate(zip(found, wanted, strict=True), 1):
        if len(one) != len(other) or not all(map(alike, one, other)):
            sys.exit(f"{expected.name}: row {number} is {one} and not {other}")
