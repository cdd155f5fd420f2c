#!/usr/bin/env bash
# Six vector stores rank four vectors by cosine distance. One vector is all zeros, as some embedders give for an empty text; it has no
# direction, so its distance is not defined.
# Guess: the distance is NULL or NaN and sorts last, or the vector is refused; in none is it the nearest.
# Seen: in sqlite-vec 0.1.9 it is the nearest, with the distance NULL, so a search for one neighbour (k = 1) finds nothing else. libsql
# 0.1.11 puts it first too. Turso 0.8.3 and usearch 2.26.6 give 1, nearer than an opposite vector. DuckDB 1.5.5 gives 2, the farthest.
# LanceDB 0.40.0 leaves it out. None reports an error.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check apsw==3.54.1.0 sqlite-vec==0.1.9 libsql==0.1.11 pyturso==0.8.3 usearch==2.26.6 \
    duckdb==1.5.5 lancedb==0.40.0
cat >seen.py <<'PY'
import apsw
import duckdb
import lancedb
import libsql
import numpy
import sqlite_vec
import turso
from usearch.index import Index

VECTORS = {"zeros": [0.0, 0.0, 0.0], "near": [1.0, 0.0, 0.0], "right angle": [0.0, 1.0, 0.0], "opposite": [-1.0, 0.0, 0.0]}
NAMES = list(VECTORS)
QUERY = [1.0, 0.1, 0.0]


def show(store, rows):
    names = [(name if isinstance(name, str) else NAMES[int(name)], distance) for name, distance in rows]
    print(f"{store}:", ", ".join(f"{name} {'NULL' if far is None else round(float(far), 1)}" for name, far in names))


database = apsw.Connection(":memory:")
database.enable_load_extension(True)
database.load_extension(sqlite_vec.loadable_path())
database.execute("CREATE VIRTUAL TABLE said USING vec0 (e float[3] distance_metric=cosine)")
for number, vector in enumerate(VECTORS.values()):
    database.execute("INSERT INTO said (rowid, e) VALUES (?, ?)", (number, sqlite_vec.serialize_float32(vector)))
for count in (4, 1):
    found = database.execute("SELECT rowid, distance FROM said WHERE e MATCH ? AND k = ?", (sqlite_vec.serialize_float32(QUERY), count))
    show(f"sqlite-vec, k = {count}", found)

RANK = "SELECT name, {}(e, {}) AS far FROM said ORDER BY far"
for store, module in (("libsql", libsql), ("Turso", turso)):
    database = module.connect(f"{store}.db")
    database.execute("CREATE TABLE said (name TEXT, e BLOB)")
    for name, vector in VECTORS.items():
        database.execute("INSERT INTO said VALUES (?, vector32(?))", (name, str(vector)))
    show(store, database.execute(RANK.format("vector_distance_cos", f"vector32('{QUERY}')")).fetchall())

index = Index(ndim=3, metric="cos")
index.add(numpy.arange(4), numpy.array(list(VECTORS.values()), dtype=numpy.float32))
found = index.search(numpy.array(QUERY, dtype=numpy.float32), 4)
show("usearch", zip(found.keys, found.distances))

database = duckdb.connect()
database.execute("CREATE TABLE said (name TEXT, e FLOAT[3])")
database.executemany("INSERT INTO said VALUES (?, ?)", list(VECTORS.items()))
show("DuckDB", database.execute(RANK.format("array_cosine_distance", f"{QUERY}::FLOAT[3]") + ", name DESC").fetchall())

table = lancedb.connect("lance").create_table("said", [{"name": name, "vector": vector} for name, vector in VECTORS.items()])
show("LanceDB", [(row["name"], row["_distance"]) for row in table.search(QUERY).metric("cosine").limit(4).to_list()])
PY
env/bin/python seen.py 2>log | tee seen || { cat log; exit 1; }
diff seen - <<'END'
sqlite-vec, k = 4: zeros NULL, near 0.0, right angle 0.9, opposite 2.0
sqlite-vec, k = 1: zeros NULL
libsql: zeros NULL, near 0.0, right angle 0.9, opposite 2.0
Turso: near 0.0, right angle 0.9, zeros 1.0, opposite 2.0
usearch: near 0.0, right angle 0.9, zeros 1.0, opposite 2.0
DuckDB: near 0.0, right angle 0.9, opposite 2.0, zeros 2.0
LanceDB: near 0.0, right angle 0.9, opposite 2.0
END
