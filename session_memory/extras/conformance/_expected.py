"""Reads an `expected.json`, and says which of its keys are wrong and what they should be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SCHEMA_FILE = Path(__file__).with_name("expected.schema.json")
_TYPES: dict[str, tuple[type, str]] = {
    "string": (str, "a text"),
    "array": (list, "an array"),
    "object": (dict, "an object"),
    "null": (type(None), "null"),
}


def read_expected(path: Path) -> dict[str, Any]:
    """Return the content of an `expected.json`.

    Raises ValueError with a line for each wrong key."""
    schema = json.loads(SCHEMA_FILE.read_text())
    try:
        expected = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: it cannot be read as JSON: {error}") from error
    if not isinstance(expected, dict):
        raise ValueError(f"{path}: it should be an object; {SCHEMA_FILE.name} has an example")
    problems = list(_problems(expected, schema))
    if problems:
        lines = "\n".join(f"- {problem}" for problem in problems)
        raise ValueError(f"{path}:\n{lines}\n{SCHEMA_FILE} describes all keys, with an example.")
    return expected


def _problems(expected: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    keys = schema["properties"]
    for name in schema["required"]:
        if name not in expected:
            yield f"{name} is missing. It should be {_wanted(keys[name])}"
    for name, value in expected.items():
        if name not in keys:
            yield f"{name} is not a key"
        elif not _fits(value, keys[name]):
            yield f"{name} is {json.dumps(value)}. It should be {_wanted(keys[name])}"


def _types_of(key: Mapping[str, Any]) -> list[str]:
    named = key.get("type", [])
    return [named] if isinstance(named, str) else list(named)


def _fits(value: object, key: Mapping[str, Any]) -> bool:
    if "enum" in key:
        return any(value == choice and type(value) is type(choice) for choice in key["enum"])
    if not isinstance(value, tuple([_TYPES[name][0] for name in _types_of(key)])):
        return False
    fewest, most = key.get("minItems", 0), key.get("maxItems", float("inf"))
    return not isinstance(value, list) or fewest <= len(value) <= most


def _wanted(key: Mapping[str, Any]) -> str:
    kinds = [_TYPES[name][1] for name in _types_of(key)]
    choices = [json.dumps(choice) for choice in key.get("enum", ())]
    return f"{' or '.join(kinds or choices)}: {key['description']}"
