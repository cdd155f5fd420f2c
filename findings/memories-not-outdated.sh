#!/usr/bin/env bash
# Four memories: one has the status `current`, one `outdated`, and two have none. Three filters of mem0 and LangGraph ask four stores for
# the current memories, for those that are not outdated, and for those that were used more than twice.
# Guess: the stores agree. A memory without a status is not outdated, and one without a count was not used more than twice.
# Seen: so it is in LangGraph's InMemoryStore in TypeScript (1.2.2). In mem0 2.2.1 over Qdrant and in LangGraph's SqliteStore (3.1.2), only
# one memory is not outdated: those without a status are left out, without a word. LangGraph's InMemoryStore in Python (4.3.2), which many
# use in tests, does find them, but raises TypeError for the third filter, because some memories lack the field.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME="$directory"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check mem0ai==2.2.1 qdrant-client==1.20.0 langgraph-checkpoint==4.3.2 \
    langgraph-checkpoint-sqlite==3.1.2
npm install --silent --no-audit --no-fund @langchain/langgraph-checkpoint@1.2.2 @langchain/core@1.4.0
cat >memories.json <<'END'
{"list": {"status": "current", "uses": 3}, "table": {"status": "outdated", "uses": 1}, "night": {"uses": 9}, "tests": {"team": "core"}}
END
cat >seen.mjs <<'JS'
import { readFileSync } from "node:fs";
import { InMemoryStore } from "@langchain/langgraph-checkpoint";
const store = new InMemoryStore();
for (const [key, fields] of Object.entries(JSON.parse(readFileSync("memories.json", "utf8")))) await store.put(["shop"], key, fields);
for (const filter of [{ status: "current" }, { status: { $ne: "outdated" } }, { uses: { $gt: 2 } }]) {
	const found = (await store.search(["shop"], { filter })).map((item) => item.key);
	console.log(`LangGraph, TypeScript: ${found.sort().join(" ") || "nothing"}`);
}
JS
cat >seen.py <<'PY'
import hashlib
import json
import os
import pathlib
import subprocess
import warnings

os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": "mem0", "OPENAI_API_KEY": "unused"}
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from mem0 import Memory

warnings.simplefilter("ignore")
MEMORIES = json.loads(pathlib.Path("memories.json").read_text())
FILTERS = {"current": ("status", "eq", "current"), "not outdated": ("status", "ne", "outdated"), "used more than twice": ("uses", "gt", 2)}


class Embedder:
    def embed(self, text, *_):
        return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:8]]

    def embed_batch(self, texts, *_):
        return [self.embed(text) for text in texts]


def mem0_over_qdrant():
    store = {"path": "qdrant", "collection_name": "shop", "embedding_model_dims": 8, "on_disk": True}
    memory = Memory.from_config({"vector_store": {"provider": "qdrant", "config": store}, "history_db_path": "history.db"})
    memory.embedding_model = Embedder()
    for text, fields in MEMORIES.items():
        memory.add(text, user_id="person", metadata=fields, infer=False)

    def find(field, operator, value):
        wanted = {field: value if operator == "eq" else {operator: value}}
        return [found["memory"] for found in memory.search("list", filters={"user_id": "person", **wanted}, threshold=0)["results"]]

    return find


def langgraph_in(store):
    for key, fields in MEMORIES.items():
        store.put(("shop",), key, fields)

    def find(field, operator, value):
        return [item.key for item in store.search(("shop",), filter={field: {f"${operator}": value}})]

    return find


with SqliteStore.from_conn_string("langgraph.db") as sqlite:
    sqlite.setup()
    finders = {"mem0, Qdrant": mem0_over_qdrant(), "LangGraph, Python": langgraph_in(InMemoryStore())}
    finders["LangGraph, SQLite"] = langgraph_in(sqlite)
    node = iter(subprocess.run(["node", "seen.mjs"], capture_output=True, text=True, check=True).stdout.splitlines())
    for question, wanted in FILTERS.items():
        for name, find in finders.items():
            try:
                found = " ".join(sorted(find(*wanted))) or "nothing"
            except TypeError:
                found = "TypeError"
            print(f"{question}: {name}: {found}")
        print(f"{question}: {next(node)}")
PY
env/bin/python seen.py 2>log | tee seen
diff seen - <<'END'
current: mem0, Qdrant: list
current: LangGraph, Python: list
current: LangGraph, SQLite: list
current: LangGraph, TypeScript: list
not outdated: mem0, Qdrant: list
not outdated: LangGraph, Python: list night tests
not outdated: LangGraph, SQLite: list
not outdated: LangGraph, TypeScript: list night tests
used more than twice: mem0, Qdrant: list night
used more than twice: LangGraph, Python: TypeError
used more than twice: LangGraph, SQLite: list night
used more than twice: LangGraph, TypeScript: list night
END
