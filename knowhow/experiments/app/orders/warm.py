# Usage: warm.py FOLDER NATIVE MIX SECONDS PERCENT. Has each server answer as fast as it can, and writes the rate of the runs.
import sys
from pathlib import Path

from shop import load, post, psql

folder, native, mix, seconds, percent = sys.argv[1:]
capacity = {}
for server in ("default", "tuned", "no_pool", "asynchronous", "small_heap"):
    post(folder, server, "/begin")
    found = load(folder, server, native, mix, "--closed", "--connections", "16", "--for", f"{seconds}s")
    post(folder, server, "/end")
    if found["errors"]["status"] or found["answered"] < found["due"]:
        sys.exit(f"{server}: errors while it was warmed up: {found['errors']}, {found['statuses']}")
    # The first half is of code that is not compiled yet.
    steady = found["answered_by_second"][int(seconds) // 2 : int(seconds)]
    capacity[server] = sum(steady) / len(steady)
    psql(folder, "db_tuned" if server == "tuned" else "db", "-f", f"{folder}/reset.sql")
# At least so many that there is something to measure, where hardly any answer came.
rate = max(min(capacity.values()) * int(percent) / 100, 20)
Path(folder, "rate").write_text(f"{rate:.1f}")
print(capacity)
