"""Reads TOML text and adds or removes tables in it. Pure.

All other bytes stay as they are.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from .json_comments import BOM
from .json_edit import StrictJsonError

_POSITION = re.compile(r"\(at line (\d+), column (\d+)\)$")
_TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*''',
    re.DOTALL,
)
_BLANK_LINES = ("\n", "\r\n")


def parse_toml(text: str) -> dict[str, Any]:
    """Return the values of a TOML text. Raises StrictJsonError, always on Python before 3.11."""
    if sys.version_info < (3, 11):
        message = "reading TOML needs Python 3.11"
        raise StrictJsonError(message, text, 0, "run this command again with a newer Python")
    import tomllib

    try:
        return tomllib.loads(text.removeprefix(BOM), parse_float=_float)
    except (ValueError, RecursionError) as error:
        place = _POSITION.search(str(error))
        at = len(text)
        if place:
            lines = text.split("\n")[: int(place[1]) - 1]
            at = sum(len(line) + 1 for line in lines) + int(place[2]) - 1
        raise StrictJsonError(_POSITION.sub("", str(error)), text, at) from None


def _float(text: str) -> float:
    """Return a number; each `nan` is one object, because containers compare objects first."""
    number = float(text)
    return math.nan if math.isnan(number) else number


def with_table(text: str, header: str, values: Mapping[str, Any]) -> str:
    """Return a TOML text with a table appended, which splits no other table.

    The `header` is a line such as `[a.b]`."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [header, *(f"{key} = {_written(value)}" for key, value in values.items()), ""]
    # without a blank line, `without_tables` knows that the text had no newline at its end
    return text + (newline if text else "") + newline.join(lines)


def without_tables(text: str, is_removed: Callable[[str], bool]) -> str:
    """Return a TOML text without some tables, and without the blank line before each.

    A table is given to `is_removed` as the text from its header to the next table's. Comments after
    its last value stay. If the text did not end with a newline before the tables were added to its
    end, it does not end with one now."""
    kept: list[str] = []
    open_at = -1  # the number of lines before a removed table that no blank line precedes
    for table, values in _tables(text):
        if not is_removed("".join(table)):
            kept += table
            continue
        if kept and kept[-1] in _BLANK_LINES:
            kept.pop()
        else:
            open_at = len(kept)
        kept += table[values:]
    if kept and open_at == len(kept):
        kept[-1] = kept[-1].removesuffix("\n").removesuffix("\r")
    return "".join(kept)


def _tables(text: str) -> list[tuple[list[str], int]]:
    """Return the lines of each table, and how many of them extend to its last value.

    The lines before the first table come first."""
    tables: list[tuple[list[str], int]] = [([], 0)]
    depth = 0  # of brackets that are open in a value
    for line, plain in zip(_lines(text), _lines(_without_strings(text))):
        is_header = depth == 0 and plain.lstrip(f"{BOM} \t").startswith("[")
        if is_header:
            tables.append(([], 0))
        else:
            depth += len(re.findall(r"[\[{]", plain)) - len(re.findall(r"[\]}]", plain))
        lines, values = tables[-1]
        lines.append(line)
        tables[-1] = lines, len(lines) if plain.strip() else values
    return tables


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _without_strings(text: str) -> str:
    """Return a TOML text with the same lines, with its strings masked and its comments blank."""
    return _TOKEN.sub(
        lambda match: re.sub(r"[^\r\n]", " " if match[0][0] == "#" else "x", match[0]), text
    )


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = [f"{key} = {_written(inner)}" for key, inner in value.items()]
        return f"{{ {', '.join(pairs)} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML forbids DEL
