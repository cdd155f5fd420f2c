"""Former names of keys, and keys that other memories of sessions have and this one has not."""

from __future__ import annotations

from typing import Any

from .sections import KEYS
from .yaml_file import Document, KeyPath, joined

_FORMER_SECTIONS = {"memory": "store"}
FORMER_WORDS = {"text": "quote", "untrusted": "isolate_memories"}  # of a rule
_FORMER_GRANTS = {"watchPath": "watch_path"}
_FORMER_KEYS = {key.alias: key for key in KEYS if key.alias}

_STORE = "transcripts are stored where `session-memory ingest` or `watch` runs, and nowhere else"
_INDEXING = "`session-memory watch` indexes as transcripts grow, `session-memory ingest` when it is run"

# By the whole name, or by the last part of it wherever it stands.
_REPLACED = {
    "store.enabled": f"{_STORE}; `sessions` and `projects` exclude from it",
    "memories.watch": "`upkeep: watch` lets `session-memory watch` make memories, and do all other upkeep",
    "store.config": "its keys stand in `store` itself, such as store.watch_path",
    "session_tracking": f"its chunking and filtering stand in `memories`; {_INDEXING}",
    "session_tracking_enabled": "a rule in `projects` excludes a directory: {~/private: {ignore: true}}",
    "global": f"{_STORE}; store.watch_path says where they lie",
    "track_session_logs": _STORE,
    "session_log_sources": "store.watch_path",
    "base_path": "store.watch_path",
    "jsonl_path": "store.watch_path",
    "project_root": "`projects` maps the directory itself to its rule",
    "indexing": _INDEXING,
    "frequency": _INDEXING,
    "batch_interval_minutes": _INDEXING,
    "incremental": "reading is always incremental",
    "mode": "runtimes are recognised by their files",
    "version": "the file has none",
}


def replacement(name: str) -> str:
    """Return what to say behind the name of an unknown key: `: what takes its place`, or `, perhaps the.key` for a key
    of another section; '' if nothing is known."""
    last = name.rpartition(".")[2]
    known = _REPLACED.get(name) or _REPLACED.get(last)
    if known:
        return f": {known}"
    elsewhere = [key.name for key in KEYS if last in (key.last_name, key.alias) and key.section]
    return f", perhaps {elsewhere[0]}" if len(elsewhere) == 1 else ""


def current(name: str) -> str:
    """Return today's name of a key or rule's word, with its sections: `store.watch_path` for `memory.watchPath`."""
    section, _, rest = name.partition(".")
    section = _FORMER_SECTIONS.get(section, section)
    if section in ("sessions", "projects") and rest:
        pattern, dot, word = rest.rpartition(".")
        return f"{section}.{pattern}{dot}{FORMER_WORDS.get(word, word)}"
    last = rest or section
    if last in _FORMER_KEYS and section in (last, _FORMER_KEYS[last].section):
        return _FORMER_KEYS[last].name
    return f"{section}.{rest}" if rest else section


def renamed(document: Document) -> Document:
    """Return what a file holds with the names of today; of a key under both names, the values count as a duplicate."""
    values: dict[str, Any] = {}
    for name, value in document.values.items():
        section = _FORMER_SECTIONS.get(name, name)
        if section in ("sessions", "projects") and isinstance(value, dict):
            value = {pattern: _with_names(rule, FORMER_WORDS) for pattern, rule in value.items()}
        elif section == "store":
            value = _with_names(value, {alias: one.last_name for alias, one in _FORMER_KEYS.items()})
        elif section == "homes" and isinstance(value, dict):
            given = {home: grants for home, grants in value.items() if isinstance(grants, list)}
            value = {
                **value,
                **{home: [_FORMER_GRANTS.get(one, one) for one in words] for home, words in given.items()},
            }
        values[section] = joined(values[section], value) if section in values else value
    lines: dict[KeyPath, int] = {}
    for path, line in document.lines.items():
        lines.setdefault(_path_of_today(path), line)
    return Document(values, lines)


def as_written(lines: dict[KeyPath, int], path: KeyPath) -> KeyPath:
    """Return the path under which a file has a key, if it does: perhaps by former names; else `path`."""
    found = {_path_of_today(one): one for one in lines}
    for depth in range(len(path), 0, -1):
        if path[:depth] in found:
            return found[path[:depth]] + path[depth:]
    return path


def _path_of_today(path: KeyPath) -> KeyPath:
    first = _FORMER_SECTIONS.get(path[0], path[0])
    if first == "store" and len(path) == 2:
        return first, _FORMER_KEYS[path[1]].last_name if path[1] in _FORMER_KEYS else path[1]
    if first in ("sessions", "projects") and len(path) == 3:
        return (*path[:2], FORMER_WORDS.get(path[2], path[2]))
    return first, *path[1:]


def _with_names(values: Any, names: dict[str, str]) -> Any:
    if not isinstance(values, dict):
        return values
    found: dict[str, Any] = {}
    former: str
    for former, value in values.items():
        name = names.get(former, former)
        found[name] = joined(found[name], value) if name in found else value
    return found
