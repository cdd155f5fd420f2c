#!/usr/bin/env bash
# Guess: rich takes the width from COLUMNS wherever it is set; `TERM=dumb` only switches off colours.
# Seen (rich 15.0.0): on a terminal with TERM=dumb or unknown the width is 80 whatever COLUMNS says; if the output is no terminal,
# COLUMNS counts again. So a table is wider in a pipe than on the screen of an editor's shell.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check rich==15.0.0
cat >seen.py <<'PY'
import io
from rich.console import Console

for term in ("xterm", "dumb", "unknown"):
    environ = {"TERM": term, "COLUMNS": "200"}
    widths = [Console(_environ=environ, file=io.StringIO(), force_terminal=is_terminal).width for is_terminal in (True, False)]
    print(term, "terminal", widths[0], "pipe", widths[1])
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
xterm terminal 200 pipe 200
dumb terminal 80 pipe 200
unknown terminal 80 pipe 200
END
