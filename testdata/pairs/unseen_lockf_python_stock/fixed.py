"""Notes sales in a journal beside the stock file; the report adds both."""

import fcntl
import hashlib
import sys

for number in range(12):
    sign = hashlib.pbkdf2_hmac("sha256", b"till 7", str(number).encode(), 10000).hex()
    with open(sys.argv[1] + ".journal", "a") as stock:
        fcntl.lockf(stock, fcntl.LOCK_EX)
        stock.write(f"{number} sold {sign}\n")
print("12 sold")
