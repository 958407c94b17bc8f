# What the programs around the shop share.
import json
import os
import subprocess
import urllib.request
from pathlib import Path


def psql(folder, database, *words):
    """What psql prints, a row in a line."""
    environment = {**os.environ, "PGSERVICEFILE": f"{folder}/services"}
    command = ["psql", "-XAtq", "-F,", "-v", "ON_ERROR_STOP=1", *words, f"service={database}"]
    return subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def post(folder, server, path):
    """Asks the shop itself."""
    url = Path(folder, f"{server}.url").read_text() + path
    with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=60) as answer:
        return answer.headers, answer.read()


def load(folder, server, native, mix, *words):
    """Makes a load, by a client on the last CPU."""
    last = str(max(os.sched_getaffinity(0)))
    command = ["taskset", "--cpu-list", last, native, "http-load", Path(folder, f"{server}.url").read_text()]
    command += ["--requests", f"{folder}/{mix}.requests", "--keep-alive", *words]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
