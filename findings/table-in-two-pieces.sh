#!/usr/bin/env bash
# A config.toml of Codex with two MCP servers. `shop` is in two pieces, since another table is between it and its `env`, and `docs` comes
# last. A program sets `shop` anew: doc["mcp_servers"]["shop"] = {"command": "new"}.
# Guess: `shop` is new, and the rest is as it was; the order of tables means nothing in TOML.
# Seen (tomlkit 0.15.2): `docs` is deleted too, without an error, and the document in memory agrees with the file. It stays if it comes
# before the other table, if `shop` is in one piece, or if only the value `command` is set.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check tomlkit==0.15.2
cat >seen.py <<'PY'
import tomlkit

SHOP = '[mcp_servers.shop]\ncommand = "shop"\n\n'
ENV = '[mcp_servers.shop.env]\nCURRENCY = "EUR"\n\n'
DOCS = '[mcp_servers.docs]\ncommand = "docs"\n\n'
TRUST = '[projects."/srv/shop"]\ntrust_level = "trusted"\n\n'
ORDERS = {
    "two pieces, docs last": SHOP + TRUST + ENV + DOCS,
    "two pieces, docs first": SHOP + DOCS + TRUST + ENV,
    "one piece, docs last": SHOP + ENV + TRUST + DOCS,
}


def set_server(servers):
    servers["shop"] = {"command": "new"}


def set_command(servers):
    servers["shop"]["command"] = "new"


for order, text in ORDERS.items():
    for change in (set_server, set_command):
        document = tomlkit.parse(text)
        change(document["mcp_servers"])
        servers = tomlkit.parse(tomlkit.dumps(document)).unwrap()["mcp_servers"]
        left = ", ".join(f"{name} {server['command']}" for name, server in sorted(servers.items()))
        agrees = "agrees" if document.unwrap()["mcp_servers"] == servers else "differs"
        print(f"{order}, {change.__name__}: {left}; memory {agrees}")
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
two pieces, docs last, set_server: shop new; memory agrees
two pieces, docs last, set_command: docs docs, shop new; memory agrees
two pieces, docs first, set_server: docs docs, shop new; memory agrees
two pieces, docs first, set_command: docs docs, shop new; memory agrees
one piece, docs last, set_server: docs docs, shop new; memory agrees
one piece, docs last, set_command: docs docs, shop new; memory agrees
END
