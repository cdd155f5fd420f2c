#!/usr/bin/env bash
# A transcript of 30,000 records. Two fields that mark a sub-agent appear late: `agentId` in record 150, `isSidechain` in record 25,000.
# Guess: a reader of JSON lines has both as columns, or complains about what it did not expect.
# Seen: Polars 2.1.0 looks at the first 100 records and drops both fields, and DuckDB 2.0.1 the second, without a word, so a query for
# sub-agents finds none. pyarrow 26.0.1 and pandas 3.1.1 have both. In parts of 10,000 records, pandas has other columns in each part.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check polars==2.1.0 duckdb==2.0.1 pyarrow==26.0.1 pandas==3.1.1
cat >seen.py <<'PY'
import json

import duckdb
import pandas
import polars
from pyarrow import json as arrow

LATE = {150: {"agentId": "a1"}, 25_000: {"isSidechain": True}}
with open("transcript.jsonl", "w") as file:
    for number in range(30_000):
        file.write(json.dumps({"type": "user", "number": number, **LATE.get(number, {})}) + "\n")
PATH = "transcript.jsonl"
COLUMNS = {
    "Polars": polars.read_ndjson(PATH).columns,
    "Polars, lazily": polars.scan_ndjson(PATH).collect().columns,
    "DuckDB": duckdb.sql(f"SELECT * FROM read_json('{PATH}')").columns,
    "pyarrow": arrow.read_json(PATH).column_names,
    "pandas": list(pandas.read_json(PATH, lines=True).columns),
}
for number, part in enumerate(pandas.read_json(PATH, lines=True, chunksize=10_000), 1):
    COLUMNS[f"pandas, part {number}"] = list(part.columns)
for reader, columns in COLUMNS.items():
    print(f"{reader}:", " ".join(sorted(columns)))
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
Polars: number type
Polars, lazily: number type
DuckDB: agentId number type
pyarrow: agentId isSidechain number type
pandas: agentId isSidechain number type
pandas, part 1: agentId number type
pandas, part 2: number type
pandas, part 3: isSidechain number type
END
