# Usage: methods.py FOLDER. From a recording of Flight Recorder: calls and time of the shop's methods, samples of all.
import csv
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

MOST = 30
folder = Path(sys.argv[1])
command = ["jfr", "print", "--json", "--stack-depth", "64", "--events", "jdk.ExecutionSample,Call"]
printed = subprocess.run([*command, folder / "run.jfr"], check=True, stdout=subprocess.PIPE).stdout
calls, times, own, within = Counter(), Counter(), Counter(), Counter()
for event in json.loads(printed)["recording"]["events"]:
    values = event["values"]
    if event["type"] == "Call":
        hours, minutes, seconds = re.fullmatch(
            r"PT(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?", values["duration"]
        ).groups("0")
        calls[values["method"]] += 1
        times[values["method"]] += round(1e9 * (3600 * int(hours) + 60 * int(minutes) + float(seconds)))
    elif values["stackTrace"]:
        frames = [frame["method"] for frame in values["stackTrace"]["frames"]]
        names = [f"{frame['type']['name'].replace('/', '.')}.{frame['name']}" for frame in frames]
        own[names[0]] += 1
        within.update(set(names))
if not calls:
    sys.exit("Flight Recorder has no call of the shop")
# Those that do most themselves, and those that have most done.
named = dict.fromkeys([*calls, *(name for counted in (own, within) for name, _ in counted.most_common(MOST))])
with open(folder / "methods.csv", "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(("method", "calls", "time_ns", "samples", "samples_within"))
    for name in named:
        counted = (calls[name], times[name]) if name in calls else ("", "")
        rows.writerow((name, *counted, own[name], within[name]))
    rows.writerow(("all others", "", "", own.total() - sum(own[name] for name in named), ""))
