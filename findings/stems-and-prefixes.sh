#!/usr/bin/env bash
# Four search engines index "running" by its stem. A person types this word, and a search while typing looks for each beginning as a
# prefix: `ru*`, `run*`, `runn*` and so on.
# Guess: each prefix finds the text, since the word begins with it.
# Seen: the text comes and goes. In FTS5 (SQLite 3.54.1 in apsw 3.54.1.0, porter) and in PostgreSQL (PGlite 0.5.4) a prefix is stemmed as
# if it was a word, so `run*` and `running*` find it, and all between do not. lunr 2.3.9 and tantivy 0.27.0 do not stem a prefix, so the
# whole word with a star finds nothing either.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check apsw==3.54.1.0 tantivy==0.27.0
npm install --silent --no-audit --no-fund lunr@2.3.9 @electric-sql/pglite@0.5.4
cat >seen.py <<'PY'
import apsw
import tantivy

WORD = "running"
PREFIXES = [WORD[:length] for length in range(2, len(WORD) + 1)]


def show(engine, finds):
    print(f"{engine}:", " ".join(prefix for prefix in PREFIXES if finds(prefix)))


database = apsw.Connection(":memory:")
database.execute("CREATE VIRTUAL TABLE said USING fts5 (text, tokenize = 'porter unicode61')")
database.execute("INSERT INTO said VALUES (?)", (f"the tests are {WORD}",))
show("FTS5", lambda prefix: list(database.execute("SELECT 1 FROM said WHERE said MATCH ?", (f"{prefix}*",))))

builder = tantivy.SchemaBuilder()
builder.add_text_field("text", stored=True, tokenizer_name="en_stem")
schema = builder.build()
index = tantivy.Index(schema)
writer = index.writer()
writer.add_document(tantivy.Document(text=f"the tests are {WORD}"))
writer.commit()
index.reload()
searcher = index.searcher()
show("tantivy", lambda prefix: searcher.search(tantivy.Query.regex_query(schema, "text", f"{prefix}.*")).hits)
PY
cat >seen.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import lunr from "lunr";
const word = "running";
const prefixes = [...word].map((_, at) => word.slice(0, at + 1)).slice(1);
const index = lunr(function () {
	this.ref("id");
	this.field("text");
	this.add({ id: 1, text: `the tests are ${word}` });
});
console.log("lunr:", prefixes.filter((prefix) => index.search(`${prefix}*`).length).join(" "));
const database = new PGlite();
const found = [];
for (const prefix of prefixes) {
	const query = "SELECT to_tsvector('english', $1) @@ to_tsquery('english', $2) AS found";
	const { rows } = await database.query(query, [`the tests are ${word}`, `${prefix}:*`]);
	if (rows[0].found) found.push(prefix);
}
console.log("PostgreSQL:", found.join(" "));
JS
{ env/bin/python seen.py; node seen.mjs; } | tee seen
diff seen - <<'END'
FTS5: ru run running
tantivy: ru run
lunr: ru run
PostgreSQL: ru run running
END
