#!/usr/bin/env bash
# edit-guard 0.2.0 refuses an edit of a file that another session of Claude Code has changed: "Re-read the file before editing."
# Guess: it refuses until the file is read again, and a change by the other session's shell counts, since it compares hashes.
# Seen: the same edit, tried a second time without reading, is let through. A change by `sed -i` is never refused.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check edit-guard==0.2.0
cat >seen.py <<'PY'
import json
import os
import pathlib
import shutil
import subprocess
import sys

HOME = pathlib.Path.cwd() / "home"
FILE = pathlib.Path.cwd() / "cart.py"
ENVIRON = {"HOME": str(HOME), "PATH": f"{pathlib.Path(sys.executable).parent}:{os.defpath}", "LANG": "C.UTF-8"}


def hooks(event, session, tool, **given):
    """Run the hooks that its installer wrote, as Claude Code does; return their exit codes."""
    groups = json.loads((HOME / ".claude/settings.json").read_text())["hooks"][event]
    commands = [hook["command"] for group in groups if tool in group["matcher"].split("|") for hook in group["hooks"]]
    text = json.dumps({"hook_event_name": event, "session_id": session, "cwd": str(FILE.parent), "tool_name": tool, "tool_input": given})
    return [subprocess.run(command, shell=True, input=text, env=ENVIRON, capture_output=True, text=True).returncode for command in commands]


def edit(session, old, new):
    given = {"file_path": str(FILE), "old_string": old, "new_string": new}
    codes = hooks("PreToolUse", session, "Edit", **given)
    if 2 in codes:
        return "refused"
    FILE.write_text(FILE.read_text().replace(old, new))
    hooks("PostToolUse", session, "Edit", **given)
    return "let through"


def sed(session):
    command = f"sed -i s/9/8/ {FILE}"
    hooks("PreToolUse", session, "Bash", command=command)
    subprocess.run(command, shell=True, check=True)
    hooks("PostToolUse", session, "Bash", command=command)


for change in ("Edit", "sed -i"):
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir()
    subprocess.run(["edit-guard", "install"], env=ENVIRON, capture_output=True, check=True)
    FILE.write_text("slots = 1\nlimit = 9\n")
    hooks("PreToolUse", "first", "Read", file_path=str(FILE))
    hooks("PreToolUse", "second", "Read", file_path=str(FILE))
    edit("second", "limit = 9", "limit = 8") if change == "Edit" else sed("second")
    tries = [edit("first", "slots = 1", "slots = 2") for _ in range(2)]
    print(f"changed by {change}: first try {tries[0]}, second try {tries[1]}")
PY
PATH="$directory/env/bin:$PATH" env/bin/python seen.py | tee seen
diff seen - <<'END'
changed by Edit: first try refused, second try let through
changed by sed -i: first try let through, second try let through
END
