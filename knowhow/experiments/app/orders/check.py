# Usage: check.py FOLDER DATABASE. Compares each page with what the generator of the data expects, and orders with the database.
import json
import sys
from pathlib import Path
from urllib.parse import urlsplit

from shop import psql

folder, database = sys.argv[1:]
run = json.loads(Path(folder, "run.json").read_text())
expected = json.loads(Path(folder, "expected.json").read_text())
if run["answered"] != run["due"] or set(run["statuses"]) - {"200", "201"}:
    sys.exit(f"{run['due']} requests, and answers {run['statuses']}; errors {run['errors']}")
wanted = {"orders": 0, "lines": 0, "quantity": 0, "full_cents": 0, "cents": 0}
for each in run["urls"]:
    parts = urlsplit(each["url"])
    request = f"{each['method']} {parts.path}?{parts.query}"
    answer = expected[request]
    if each["method"] == "POST":
        wanted["orders"] += each["answered"]
        for name, number in answer.items():
            wanted[name] += number * each["answered"]
    elif each["answered"] and each["crc32"] != answer:
        sys.exit(f"{request}: {each['answered']} answers are not all as expected")
sums = run["sums"]
acknowledged = {
    "orders": sums["order-lines"]["answers"],
    "lines": sums["order-lines"]["sum"],
    "cents": sums["order-cents"]["sum"],
}
for name, number in acknowledged.items():
    if number != wanted[name]:
        sys.exit(f"{number} {name} were acknowledged, and {wanted[name]} were ordered")
names = ("orders", "cents", "lines", "quantity", "full_cents", "taken")
stored = dict(
    zip(names, map(int, psql(folder, database, "-f", f"{folder}/placed.sql").split(",")), strict=True)
)
wanted["taken"] = wanted["quantity"]
if stored != wanted:
    sys.exit(f"the database has {stored}, and {wanted} was acknowledged")
