"""Looks up numbers in a catalogue, which is read at the start."""

import sys
from pathlib import Path

text = Path(sys.argv[1]).read_bytes()
found = 0
for number in range(90):
    found += text.find(b"\n%d," % (number * 101 + 5)) > 0
print("found", found)
