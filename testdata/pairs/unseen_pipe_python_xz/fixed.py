"""Writes measurements into an archive, with a compressor that keeps up."""

import subprocess
import sys

with open(sys.argv[1], "wb") as target:
    compressor = subprocess.Popen(["zstd", "-q", "-1"], stdin=subprocess.PIPE, stdout=target)
for number in range(3):
    # A day of measurements, always the same seed.
    day = b"".join(b"%d;%d;%d\n" % (n, n * n % 1009, n * number % 97) for n in range(30000))
    compressor.stdin.write(day)
compressor.stdin.close()
compressor.wait()
print("3 days written")
