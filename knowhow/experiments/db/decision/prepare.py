# Usage: prepare.py FOLDER. Writes the answers of another database, and the scripts that load the data and ask the queries.
import csv
import os
import sys
from pathlib import Path

import duckdb

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
# The scripts run in the folder: no path is a part of them.
os.chdir(sys.argv[1])
folder = Path()
tables = (folder / "tables.sql").read_text()
copies = [f"FROM 'data.csv/{name}.csv'" for name in TABLES]
load = "".join(f"\\copy {name} {copy} CSV HEADER\n" for name, copy in zip(TABLES, copies, strict=True))
(folder / "load.sql").write_text(tables + load + (folder / "indexes.sql").read_text())
oracle = duckdb.connect()
oracle.execute(tables)
for name, copy in zip(TABLES, copies, strict=True):
    oracle.execute(f"COPY {name} {copy} (FORMAT csv, HEADER)")
script = "\\timing on\n\\pset format csv\n\\pset tuples_only on\n"
(folder / "expected").mkdir(exist_ok=True)
(folder / "answers").mkdir(exist_ok=True)
for query in sorted(folder.glob("q??.sql")):
    script += f"\\o answers/{query.stem}\n\\echo {query.stem}\n\\i {query}\n"
    with open(folder / "expected" / query.stem, "w", newline="") as file:
        csv.writer(file).writerows(oracle.execute(query.read_text()).fetchall())
(folder / "all.sql").write_text(script)
