"""Makes the input of pairs, the same each time.

make.py lines PATH COUNT              text: number,name,value on each line
make.py bytes PATH COUNT              that many bytes, not all alike
make.py files FOLDER COUNT BYTES      f00000.dat, f00001.dat, ... with that many bytes each
make.py events PATH COUNT             a 32-byte header with the length, then the body (100 to 700 bytes)
"""

import random
import struct
import sys
from pathlib import Path

chance = random.Random(2015)
kind, target, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
target.parent.mkdir(parents=True, exist_ok=True)
if kind == "lines":
    text = (
        f"{n},{chance.choice('ABCDEFGH')}{n * 7919 % (count // 2 + 1):05},{chance.randrange(1000)}\n"
        for n in range(count)
    )
    target.write_text("".join(text))
elif kind == "bytes":
    target.write_bytes((chance.randbytes(1 << 16) * (count // (1 << 16) + 1))[:count])
elif kind == "files":
    target.mkdir(exist_ok=True)
    for n in range(count):
        (target / f"f{n:05}.dat").write_bytes(chance.randbytes(int(sys.argv[4])))
elif kind == "events":
    with open(target, "wb") as out:
        for n in range(count):
            body = chance.randbytes(chance.randrange(100, 700))
            out.write(struct.pack("<qq16x", n, len(body)) + body)
else:
    sys.exit(f"make.py: {kind}: no such kind")
