"""Looks up numbers in a catalogue. Somebody may have changed it in between, so it is read for each."""

import sys
from pathlib import Path

found = 0
for number in range(90):
    text = Path(sys.argv[1]).read_bytes()
    found += text.find(b"\n%d," % (number * 101 + 5)) > 0
print("found", found)
