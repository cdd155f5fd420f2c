"""The line of an error's text that tells most. Pure.

The first line of what a failed command printed is seldom the error: package runners print banners, interpreters
warnings, compilers what they are about to do, and Python the way to its error before the error.
"""

from __future__ import annotations

import re

from ..sanitize import visible

LOOKED_AT_CHARACTERS = 3 * 1024  # at either end of the text
_LINE_CHARACTERS = 1000

_NOISE = re.compile(
    r"> |\(node:\d+\)|\(Use `node |Debugger (?:attached|listening)|Waiting for the debugger|npm (?:warn|notice)|"
    r"at .*[(:]\d+|File \"|Traceback \(most recent|\(no output\)|hint:|For help, see|A complete log of this run|"
    r"% Total|% +Received|[-=~^*_#\s|\u2500-\u257f]+$",
    re.IGNORECASE,
)
_EXIT = re.compile(r"(?:exit code|command (?:exited with code|failed with exit code)) -?\d+\.?$", re.IGNORECASE)
_WRAPPER = re.compile(r"npm (?:error|ERR!) (?:code|errno|syscall|path|command|Lifecycle|Failed at)", re.IGNORECASE)
_PYTHON = re.compile(r"(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: |$)")
_STRONG = re.compile(
    r"\b(?:error|fatal|panic(?:ked)?|exception)\b(?:[ \[(]+[A-Za-z]*\d+[\])]?)?\s*:|^(?:error|fatal|FAIL(?:ED)?)\b|"
    r"\berror TS\d+|\b\w+(?:Error|Exception)\b: |\bE(?:NOENT|ACCES|PERM|EXIST|CONNREFUSED|ADDRINUSE|TIMEDOUT|PIPE)\b|"
    r"^E {2,}\S|command not found|no such file or directory|permission denied|cannot find|could not (?:find|resolve)|"
    r"is not recognized as|\bundefined (?:symbol|reference)\b|^[✗✘✖×] |^(?:AssertionError|Segmentation fault)",
    re.IGNORECASE,
)
_WEAK = re.compile(
    r"\b(?:errors?|fail(?:s|ed|ure|ures|ing)?|denied|invalid|unexpected|missing|unable|refused|reject(?:ed)?|aborted|"
    r"blocked|timed out|timeout|not found|not allowed|cannot|can't|conflicts?|unknown|unrecognized)\b",
    re.IGNORECASE,
)
_NOTHING_WRONG = re.compile(
    r"\b(?:0|no) (?:errors?|failures?|failed|conflicts?)\b|error\W{0,3}\s?(?:false|null|none)\b", re.IGNORECASE
)
# In whatever _STRONG and _WEAK find, one of these stands: most lines have none, and looking for these takes less.
_HINTS = (
    "error", "fail", "fatal", "panic", "exception", "enoent", "eacces", "eperm", "eexist", "econnrefused", "eaddrinuse",
    "etimedout", "epipe", "no such", "denied", "cannot", "can't", "could not", "recognized", "undefined", "✗", "✘", "✖",
    "×", "segmentation", "invalid", "unexpected", "missing", "unable", "refused", "reject", "aborted", "blocked",
    "timed out", "timeout", "not found", "not allowed", "conflict", "unknown",
)  # fmt: skip


def telling_line(text: str) -> str:
    """The line of `text` that says what went wrong, as plain characters, behind the exit code if that comes first;
    where none does, the first that is not noise; '' if there is no line."""
    text = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
    if len(text) > 2 * LOOKED_AT_CHARACTERS:
        text = f"{text[:LOOKED_AT_CHARACTERS]}\n{text[-LOOKED_AT_CHARACTERS:]}"
    lines = [line.strip()[:_LINE_CHARACTERS] for line in visible(text).splitlines() if line.strip()]
    told = [line for line in lines if not _NOISE.match(line) and not _EXIT.match(line)]
    if not told:
        return next((line for line in lines if _EXIT.match(line)), lines[0] if lines else "")
    exit_code = f"{lines[0]}: " if _EXIT.match(lines[0]) else ""
    raised = [line for line in told if _PYTHON.match(line)]
    if raised and any(line.startswith("Traceback (most recent") for line in lines):
        return exit_code + raised[-1]
    small = text.lower()
    hints = [hint for hint in _HINTS if hint in small]
    weights = [_weight(line, hints) for line in told]
    best = 0 if weights[0] else weights.index(max(weights))  # the first of several alike
    return exit_code + told[best]


def _weight(line: str, hints: list[str]) -> int:
    """How much a line tells; `hints` are those that stand in the text at all."""
    small = line.lower()
    if not any(hint in small for hint in hints) and not line.startswith("E  "):
        return 0
    if _NOTHING_WRONG.search(line):
        return 0
    if _STRONG.search(line):
        return 1 if _WRAPPER.match(line) else 3
    return 2 if _WEAK.search(line) else 0
