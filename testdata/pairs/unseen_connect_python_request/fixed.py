"""Reads 600 values from a server, over one connection."""

import http.client
import sys
from pathlib import Path

port = int(Path(sys.argv[1]).read_text())
total = 0
connection = http.client.HTTPConnection("127.0.0.1", port)
for number in range(600):
    connection.request("GET", f"/value{number}")
    total += int(connection.getresponse().read())
connection.close()
print("total", total)
