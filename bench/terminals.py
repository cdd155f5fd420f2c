"""A picture of two terminals: two agents in one project.

It shows the hook's addition to a prompt, and the agent's next step. The words and calls are from
invented transcripts; the addition comes from a run of the hook on them."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from html import escape
from pathlib import Path
from typing import NamedTuple

from session_memory.app.install.example import write_sample
from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.log import last_entries

from .scenes import REPOSITORY

PROMPT = "Now add a second slot."
CAPTION = "session-memory adds to the prompt:"
THEN = "Another session changed src/cart.ts. I read it again first."
PANE, HEIGHT, GAP = 590, 372, 12
LINE, LEFT, TOP, COLUMNS = 19, 16, 62, 66
COLOURS = {
    "user": "#f0f2f6",
    "agent": "#b9bfcb",
    "tool": "#7d8696",
    "told": "#a9c6fb",
    "alarm": "#ff9b90",
}
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"
 role="img" aria-label="{label}">
<style>
text {{font: 13px/1 "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre}}
.title {{font-size: 12px; fill: #9aa3b2}}
.alarm {{font-weight: bold}}
</style>
"""


class Line(NamedTuple):
    """A line of a terminal (0 is the left one), its kind (a key of COLOURS), and its row."""

    pane: int
    kind: str
    text: str
    row: int


def scene(home: Path) -> list[Line]:
    """Return the lines of both terminals.

    The left agent reads a file and the right one edits it. The left one gets its next prompt with
    the hook's addition, and continues from there."""
    left, right = write_sample(REPOSITORY, home)
    before = _said(runtime("agent-sdk"), left)
    edited = _said(runtime("codex"), right)
    added = [
        ("alarm" if text.startswith("!") else "told", part)
        for text in told(home, left).splitlines()
        for part in _wrapped(text, "  ")
    ]
    go_on(left, f"{home}/shop")
    after = _said(runtime("agent-sdk"), left)[len(before) :]
    lines = [*before, ("user", ""), after[0], ("tool", CAPTION), *added, *after[1:]]
    right_row = len(before)  # Codex edits between the two prompts on the left
    return [
        *(Line(0, kind, text, row) for row, (kind, text) in enumerate(lines)),
        *(Line(1, kind, text, row) for row, (kind, text) in enumerate(edited, right_row)),
    ]


def go_on(transcript: str, project: str) -> None:
    """Append the next turn to the transcript: the prompt, and the agent reading the file again
    before it edits it."""
    path = f"{project}/src/cart.ts"
    with open(transcript) as file:
        records = [json.loads(line) for line in file]
    user, call = records[0], records[1]
    use = {"type": "tool_use", "id": "toolu_sample_2", "name": "Read", "input": {"file_path": path}}
    edit = {
        **use,
        "id": "toolu_sample_3",
        "name": "Edit",
        "input": {"file_path": path, "old_string": "4", "new_string": "5"},
    }
    said = [{"type": "text", "text": THEN}, use]
    turns = [(user, PROMPT)] + [(call, content) for content in (said, [edit])]
    with open(transcript, "a") as file:
        for number, (like, content) in enumerate(turns):
            message = {**like["message"], "content": content, "id": f"msg_sample_{3 + number}"}
            uuid = f"00000000-0000-4000-8000-{5 + number:012}"
            record = {**like, "parentUuid": records[-1]["uuid"], "uuid": uuid, "message": message}
            records.append(record | {"timestamp": records[-1]["timestamp"]})
            file.write(json.dumps(records[-1]) + "\n")


def told(home: Path, transcript: str) -> str:
    """Return the hook's addition to the prompt of the session with this transcript.

    The hook runs as Claude Code runs it."""
    runtime_instance = runtime("agent-sdk")
    project = f"{home}/shop"
    event = runtime_instance.install.prompt_event(
        runtime_instance.session_id_of(transcript), transcript, project, PROMPT
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(REPOSITORY / "hooks" / "user_prompt_submit.py")],
        input=json.dumps(event).encode(),
        capture_output=True,
        check=True,
        cwd=project,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "CLAUDE_CODE_ENTRYPOINT": "cli"},
    )
    return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"])


def drawn(lines: list[Line]) -> str:
    """Return the picture as SVG."""
    texts = []
    for line in lines:
        x, y = LEFT + line.pane * (PANE + GAP), TOP + line.row * LINE
        if line.text:
            style = f'class="{line.kind}" fill="{COLOURS[line.kind]}"'
            texts.append(f'<text x="{x}" y="{y}" {style}>{escape(line.text)}</text>\n')
    label = (
        "Codex edits a file that Claude Code has read; with its next prompt Claude Code "
        "learns it and reads again"
    )
    parts = [HEAD.format(width=2 * PANE + GAP, height=HEIGHT, label=escape(label))]
    for pane, title in enumerate(("~/shop $ claude", "~/shop $ codex")):
        x = pane * (PANE + GAP)
        parts.append(
            f'<rect x="{x}" y="0" width="{PANE}" height="{HEIGHT}" rx="8" fill="#16181d"/>\n'
        )
        parts.append(f'<text class="title" x="{x + LEFT}" y="26">{title}</text>\n')
    return "".join([*parts, *texts, "</svg>\n"])


def _said(runtime: Runtime, transcript: str) -> list[tuple[str, str]]:
    """Return the kind and text of each line that a terminal shows of a transcript."""
    entries, _ = last_entries(runtime, transcript, 50, None)
    lines = []
    for entry in entries:
        shown = (
            [("user", "> ", entry.text)] if entry.role == "user" else [("agent", "● ", entry.text)]
        )
        shown += [
            ("tool", "● ", f"{_verb(tool.kind)} {tool.argument.rpartition('/shop/')[2]}")
            for tool in entry.tools
        ]
        lines += [
            (kind, part)
            for kind, mark, text in shown
            if text
            for part in _wrapped(mark + text, "  ")
        ]
    return lines


def _verb(kind: str) -> str:
    return {"read": "Read", "edit": "Edited", "command": "Ran"}.get(kind, "Used")


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, COLUMNS, subsequent_indent=indent, break_on_hyphens=False) or [""]
