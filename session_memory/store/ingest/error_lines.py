"""Finds the line of a command's output that says what went wrong. Pure.

The first line is seldom the error: package runners print banners, interpreters warnings, compilers their steps, and
Python the traceback before the exception.
"""

from __future__ import annotations

import re

from ...text.sanitize import beginning, for_people

ERROR_CHARACTERS = 300  # of the returned line
LOOKED_AT_CHARACTERS = 3 * 1024  # at either end of the text
_LINE_CHARACTERS = 1000
_MOST_CHARACTERS = 256 * 1024  # in which secrets are searched for: some milliseconds
_WRAPPING, _WEAKER, _STRONGEST = 1, 2, 3  # how surely a line names the error

_NOISE = re.compile(
    r"> |\(node:\d+\)|\(Use `node |Debugger (?:attached|listening)|Waiting for the debugger|npm (?:warn|notice)|"
    r"at .*[(:]\d+|File \"|Traceback \(most recent|\(no output\)|hint:|For help, see|A complete log of this run|"
    r"% Total|% +Received|[-=~^*_#\s|\u2500-\u257f]+$",
    re.IGNORECASE,
)
_EXIT = re.compile(r"(?:exit code|command (?:exited with code|failed with exit code)) -?\d+\.?$", re.IGNORECASE)
_PYTHON = re.compile(r"(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: |$)")

# The following patterns are for lowercased lines, and each alternative begins with letters (the text before them is
# checked afterwards): ignoring case, or matching from a word's beginning, takes several times as long.
_CODE_AND_COLON = r"\b(?:[ \[(]+[a-z]*\d+[\])]?)?\s*:"
_STRONG = re.compile(
    rf"error(?:: |(?<=\berror)(?:{_CODE_AND_COLON}| ts\d+))|exception(?:: |(?<=\bexception){_CODE_AND_COLON})|"
    rf"fatal(?<=\bfatal){_CODE_AND_COLON}|panic(?<=\bpanic)(?:ked)?{_CODE_AND_COLON}|"
    r"e(?<=\be)(?:noent|acces|perm|exist|connrefused|addrinuse|timedout|pipe)\b|"
    r"command not found|no such file or directory|permission denied|cannot find|could not (?:find|resolve)|"
    r"is not recognized as|undefined(?<=\bundefined) (?:symbol|reference)\b"
)
_STRONG_BEGINNING = re.compile(r"(?:error|fatal|fail(?:ed)?)\b|e {2,}\S|[✗✘✖×] |assertionerror|segmentation fault")
_WRAPPER = re.compile(r"npm (?:error|err!) (?:code|errno|syscall|path|command|lifecycle|failed at)")
_WEAK = re.compile(
    r"(?:errors?|fail(?:s|ed|ure|ures|ing)?|denied|invalid|unexpected|missing|unable|refused|reject(?:ed)?|aborted|"
    r"blocked|timed out|timeout|not found|not allowed|cannot|can't|conflicts?|unknown|unrecognized)\b"
)
_NOTHING_WRONG = re.compile(
    r"(?:0(?<=\b0)|no(?<=\bno)) (?:errors?|failures?|failed|conflicts?)\b|error\W{0,3}\s?(?:false|null|none)\b"
)


def error_line(text: str) -> str:
    """Return the line of `text` that says what went wrong, for people, after the exit code if `text` begins with that.
    If no line does, return the first that is not noise; '' if there is none. At most ERROR_CHARACTERS."""
    text = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
    if len(text) > _MOST_CHARACTERS:
        last = text[-_MOST_CHARACTERS // 2 :].partition("\n")[2]  # no line is cut in two, nor a secret in it
        text = f"{beginning(text, LOOKED_AT_CHARACTERS)}\n{last}"
    text = for_people(text)
    if len(text) > 2 * LOOKED_AT_CHARACTERS:
        text = f"{text[:LOOKED_AT_CHARACTERS]}\n{text[-LOOKED_AT_CHARACTERS:]}"
    lines = [stripped[:_LINE_CHARACTERS] for line in text.splitlines() if (stripped := line.strip())]
    return _chosen(lines).strip()[:ERROR_CHARACTERS]


def _chosen(lines: list[str]) -> str:
    first = next((number for number, line in enumerate(lines) if _is_candidate(line)), None)
    if first is None:
        return next((line for line in lines if _EXIT.match(line)), lines[0] if lines else "")
    exit_code = f"{lines[0]}: " if _EXIT.match(lines[0]) else ""
    if raised := _raised(lines):
        return exit_code + raised
    return exit_code + _best(lines[first:])


def _is_candidate(line: str) -> bool:
    """Check that a line is neither noise nor the exit code alone."""
    return not _NOISE.match(line) and not _EXIT.match(line)


def _raised(lines: list[str]) -> str:
    """Return the last exception that a traceback of Python ends with; '' if there is none."""
    if not any(line.startswith("Traceback (most recent") for line in lines):
        return ""
    return next((line for line in reversed(lines) if _PYTHON.match(line) and _is_candidate(line)), "")


def _best(lines: list[str]) -> str:
    """Return the first of `lines`, if it has any weight, else the one that has most, the first of several alike."""
    best, most = lines[0], _weight(lines[0], 0)
    if most:
        return best
    for line in lines[1:]:
        weight = _weight(line, most)
        if weight > most and _is_candidate(line):
            best, most = line, weight
            if most == _STRONGEST:
                break
    return best


def _weight(line: str, least: int) -> int:
    """Return how surely a line names the error, up to _STRONGEST; 0 may be returned for any value up to `least`."""
    small = line.lower()
    if _STRONG_BEGINNING.match(small) or _STRONG.search(small):
        weight = _WRAPPING if _WRAPPER.match(small) else _STRONGEST
    else:
        weight = _WEAKER if least < _WEAKER and _WEAK.search(small) else 0
    return 0 if weight and _NOTHING_WRONG.search(small) else weight
