# Usage: run.py FOLDER NATIVE MIX SERVER DATABASE SECONDS CONNECTIONS. Makes the load of a run, and says what it took.
import json
import os
import sys
import time
from pathlib import Path

from shop import load, post, psql

folder, native, mix, server, database, seconds, connections = sys.argv[1:]
COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'"
CLIENTS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'orders'"
cluster = psql(folder, database, "-c", "SHOW data_directory")
postmaster = int(Path(cluster, "postmaster.pid").read_text().split()[0])


def database_cpu_s():
    """Of all its processes; of those that have ended, as far as the postmaster waited for them."""
    ticks = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if postmaster in (int(name), int(words[1])):
            ticks += int(words[11]) + int(words[12])
            ticks += int(words[13]) + int(words[14]) if int(name) == postmaster else 0
    return ticks / os.sysconf("SC_CLK_TCK")


post(folder, server, "/begin")
commits = int(psql(folder, database, "-c", COMMITS))
cpu_s = database_cpu_s()
words = ["--rate", Path(folder, "rate").read_text(), "--connections", connections, "--for", f"{seconds}s"]
words += ["--timeout", "30s", "--checksums", "--sum", "order-lines", "--sum", "order-cents"]
found = load(folder, server, native, mix, *words)
cpu_s = database_cpu_s() - cpu_s
head, recording = post(folder, server, "/end")
# PostgreSQL counts what a connection did when it ends, at the latest.
until = time.monotonic() + 10
while int(psql(folder, database, "-c", CLIENTS)):
    if time.monotonic() > until:
        sys.exit("the shop does not close its connections")
    time.sleep(0.05)
found["database_cpu_s"] = round(cpu_s, 2)
found["app_cpu_s"] = int(head["Cpu-Ns"]) / 1e9
found["collected_ms"] = int(head["Collected-Ms"])
found["commits"] = int(psql(folder, database, "-c", COMMITS)) - commits
Path(folder, "run.jfr").write_bytes(recording)
Path(folder, "run.json").write_text(json.dumps(found))
del found["urls"], found["latency"]["classes"]
print(json.dumps(found))
