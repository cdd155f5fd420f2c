"""An animated picture of two terminals: what two agents do in one project, and what the hook adds to a prompt.

What they say is that of the sample's transcripts; what is added comes from a run of the hook on them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from html import escape
from pathlib import Path
from typing import NamedTuple

from session_memory.install.example import write_sample
from session_memory.runtimes import Runtime, runtime
from session_memory.transcripts.log import last_entries

from .scenes import REPOSITORY

PROMPT = "Now add a second slot."
CAPTION = "added to the prompt by session-memory, for the agent alone:"
SECONDS = 18.0
SHOWN_UNTIL = 0.97  # of the time; then it begins again
PANE, HEIGHT, GAP = 590, 330, 12
LINE, LEFT, TOP, COLUMNS = 19, 16, 62, 66
COLOURS = {"user": "#f0f2f6", "agent": "#b9bfcb", "tool": "#7d8696", "told": "#a9c6fb", "alarm": "#ff9b90"}
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"
 role="img" aria-label="{label}">
<style>
text {{font: 13px/1 "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre}}
.title {{font-size: 12px; fill: #9aa3b2}}
@media (prefers-reduced-motion: reduce) {{.line {{animation: none !important; opacity: 1 !important}}}}
{styles}</style>
"""


class Line(NamedTuple):
    """A line of a terminal (0 is the left one), its kind (a key of COLOURS), and the second in which it appears."""

    pane: int
    kind: str
    text: str
    second: float


def scene(home: Path) -> list[Line]:
    """Return the lines of both terminals: first the left agent reads, then the right one edits, then the left one is
    asked again, and the hook tells it."""
    left, right = write_sample(REPOSITORY, home)
    lines = [*_said(0, runtime("agent-sdk"), left, 0.5, 1.4), *_said(1, runtime("codex"), right, 4.5, 1.2)]
    second = max(line.second for line in lines) + 1.2
    lines += [Line(0, "user", "", second), Line(0, "user", f"> {PROMPT}", second)]
    lines.append(Line(0, "tool", CAPTION, second + 1))
    for text in told(home, left).splitlines():
        kind = "alarm" if text.startswith("!") else "told"
        lines += [Line(0, kind, part, second + 1.6) for part in _wrapped(text, "  ")]
    return lines


def told(home: Path, transcript: str) -> str:
    """Return what the hook adds to the prompt of the session with this transcript, as Claude Code runs it."""
    one = runtime("agent-sdk")
    project = f"{home}/shop"
    event = one.install.prompt_event(one.session_id_of(transcript), transcript, project, PROMPT)
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(REPOSITORY / "hooks" / "user_prompt_submit.py")],
        input=json.dumps(event).encode(), capture_output=True, check=True, cwd=project,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "CLAUDE_CODE_ENTRYPOINT": "cli"},
    )  # fmt: skip
    return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"])


def drawn(lines: list[Line]) -> str:
    """Return the picture as SVG."""
    rows = [0, 0]
    styles, texts = [], []
    for number, line in enumerate(lines):
        x = LEFT + line.pane * (PANE + GAP)
        y = TOP + rows[line.pane] * LINE
        rows[line.pane] += 1
        if not line.text:
            continue
        begin = 100 * line.second / SECONDS
        styles.append(
            f"@keyframes k{number} {{0%, {begin:.1f}% {{opacity: 0}} {begin + 1:.1f}%, {100 * SHOWN_UNTIL:.0f}% "
            f"{{opacity: 1}} 100% {{opacity: 0}}}} .l{number} {{animation: k{number} {SECONDS:.0f}s infinite}}\n"
        )
        colour = COLOURS[line.kind]
        texts.append(f'<text class="line l{number}" x="{x}" y="{y}" fill="{colour}">{escape(line.text)}</text>\n')
    label = "Codex edits a file that Claude Code has read; the next prompt in Claude Code brings the collision"
    width = 2 * PANE + GAP
    parts = [HEAD.format(width=width, height=HEIGHT, label=escape(label), styles="".join(styles))]
    for pane, title in enumerate(("~/shop $ claude", "~/shop $ codex")):
        x = pane * (PANE + GAP)
        parts.append(f'<rect x="{x}" y="0" width="{PANE}" height="{HEIGHT}" rx="8" fill="#16181d"/>\n')
        parts.append(f'<text class="title" x="{x + LEFT}" y="26">{title}</text>\n')
    return "".join([*parts, *texts, "</svg>\n"])


def _said(pane: int, one: Runtime, transcript: str, begin: float, pause: float) -> list[Line]:
    """Return what a transcript shows, a part every `pause` seconds."""
    entries, _ = last_entries(one, transcript, 50, None)
    lines = []
    second = begin
    for entry in entries:
        shown = [("user", "> ", entry.text)] if entry.role == "user" else [("agent", "● ", entry.text)]
        shown += [("tool", "● ", f"{_verb(tool.kind)} {tool.argument.rpartition('/shop/')[2]}") for tool in entry.tools]
        for kind, mark, text in shown:
            if text:
                lines += [Line(pane, kind, part, second) for part in _wrapped(mark + text, "  ")]
                second += pause
    return lines


def _verb(kind: str) -> str:
    return {"read": "Read", "edit": "Edited", "command": "Ran"}.get(kind, "Used")


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, COLUMNS, subsequent_indent=indent, break_on_hyphens=False) or [""]
