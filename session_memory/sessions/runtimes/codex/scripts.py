"""Finds the commands and patches in JavaScript that calls tools in Codex' code mode. Pure.

Versions before 0.169 record them nowhere else. Only literal texts of the script are found.
"""

from __future__ import annotations

from ....common.system.json import decode

_PATCH = "*** Begin Patch"
_COMMAND_KEYS = ("cmd", '"cmd"', "'cmd'", "command", '"command"', "'command'")
MOST_CHARACTERS = 256 * 1024


def commands_in(script: str) -> list[str]:
    """Return the command lines that a script gives to `exec_command` or another shell, in order."""
    if "exec_command(" not in script and "shell" not in script:
        return []
    return [text for before, text in _literals(script) if before.endswith(_COMMAND_KEYS)]


def patches_in(script: str) -> list[str]:
    """Return the patches that a script gives to `apply_patch`, in order."""
    if "apply_patch(" not in script:
        return []
    return [text for _, text in _literals(script) if text.lstrip().startswith(_PATCH)]


def _literals(script: str) -> list[tuple[str, str]]:
    """Return the strings in a script, each with the key before it; the key is '' if there is
    none."""
    literals: list[tuple[str, str]] = []
    at, script = 0, script[:MOST_CHARACTERS]
    while at < len(script):
        mark = script[at]
        if script.startswith("//", at):
            at = script.find("\n", at) if "\n" in script[at:] else len(script)
        elif mark in "\"'`":
            end = _end_of(script, at)
            if end >= len(script):
                break
            before = script[max(0, at - 20) : at].rstrip()
            key = before[:-1].rstrip() if before.endswith(":") else ""
            text = _unquoted(script[at : end + 1])
            if text is not None:
                literals.append((key, text))
            at = end + 1
        else:
            at += 1
    return literals


def _end_of(script: str, at: int) -> int:
    """Return the index of the closing mark of the string that begins at `at`."""
    mark, end = script[at], at + 1
    while end < len(script) and script[end] != mark:
        end += 2 if script[end] == "\\" else 1
    return end


def _unquoted(literal: str) -> str | None:
    """Return the value of a JavaScript string; None if it is only known when the script runs."""
    mark, inner = literal[0], literal[1:-1]
    if mark == "`" and "${" in inner:
        return None
    if mark != '"':
        inner = inner.replace(f"\\{mark}", mark).replace('"', '\\"').replace("\r", "")
        inner = inner.replace("\n", "\\n").replace("\t", "\\t").replace("\\$", "$")
    try:
        text = decode(f'"{inner}"')
    except ValueError:
        return None
    return text if isinstance(text, str) else None
