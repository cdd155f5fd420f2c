"""Former names of keys, and keys that only other session memories have."""

from __future__ import annotations

from .section_table import KEYS
from .yaml_file import Document, KeyPath, joined

_FORMER_SECTIONS = {"memory": "store"}
FORMER_WORDS = {"text": "quote", "untrusted": "isolate_memories"}  # of a rule
_FORMER_GRANT, _GRANT = "watchPath", "watch_path"  # of a home
_OF_RULES = ("sessions", "projects")
_FORMER_KEYS = {key.alias: key for key in KEYS if key.alias}

_STORE = "transcripts are stored only on machines where `session-memory ingest` or `watch` runs"
_INDEXING = "`session-memory watch` indexes transcripts as they grow; `session-memory ingest` indexes when you run it"

# By the whole name, or by its last part anywhere.
_REPLACED = {
    "store.enabled": f"{_STORE}; rules in `sessions` and `projects` exclude sessions",
    "memories.watch": "with `upkeep: watch`, `session-memory watch` makes memories and does "
    "all other upkeep",
    "store.config": "its keys are now in `store` itself, such as store.watch_path",
    "proof": "a warning is never withheld now: delete the section",
    "session_tracking": f"its chunking and filtering are now in `memories`; {_INDEXING}",
    "session_tracking_enabled": "a rule in `projects` excludes a directory: {~/private: "
    "{ignore: true}}",
    "global": f"{_STORE}; store.watch_path names their directories",
    "track_session_logs": _STORE,
    "session_log_sources": "store.watch_path",
    "base_path": "store.watch_path",
    "jsonl_path": "store.watch_path",
    "project_root": "`projects` maps each directory to its rule",
    "indexing": _INDEXING,
    "frequency": _INDEXING,
    "batch_interval_minutes": _INDEXING,
    "incremental": "reading is always incremental",
    "mode": "runtimes are recognised by their files",
    "version": "the file has none",
}


def replacement(name: str) -> str:
    """Return a hint to append to an unknown key's name; '' if there is none.

    It is `: the replacement`, or `, perhaps the.key` for a key of another section."""
    last = name.rpartition(".")[2]
    known = _REPLACED.get(name) or _REPLACED.get(last)
    if known:
        return f": {known}"
    elsewhere = [key.name for key in KEYS if last in (key.last_name, key.alias) and key.section]
    return f", perhaps {elsewhere[0]}" if len(elsewhere) == 1 else ""


def current(name: str) -> str:
    """Return the current name of a key or rule's word: `store.watch_path` for `memory.watchPath`.

    The name includes the sections."""
    if name in _FORMER_KEYS:
        return _FORMER_KEYS[name].name
    section, _, remainder = name.partition(".")
    pattern, dot, word = remainder.rpartition(".")
    path = (
        (section, pattern, word)
        if section in _OF_RULES and dot
        else (section, remainder)
        if remainder
        else (section,)
    )
    return ".".join(_path_of_today(path))


def renamed(document: Document) -> Document:
    """Return a file's content with current names; a key under both names counts as a duplicate."""
    lines: dict[KeyPath, int] = {}
    for path, line in document.lines.items():
        lines.setdefault(_path_of_today(path), line)
    return Document(_renamed_section(document.values, ()), lines)


def _renamed(value: object, at: KeyPath) -> object:
    """Return a file's content at a path, with current names."""
    if at[:1] == ("homes",) and isinstance(value, list):
        return [_GRANT if word == _FORMER_GRANT else word for word in value]
    return _renamed_section(value, at) if isinstance(value, dict) else value


def _renamed_section(values: dict[str, object], at: KeyPath) -> dict[str, object]:
    current_section: dict[str, object] = {}
    for name, inner in values.items():
        path = _path_of_today((*at, name))
        new = _renamed(inner, path)
        current_section[path[-1]] = (
            joined(current_section[path[-1]], new) if path[-1] in current_section else new
        )
    return current_section


def as_written(lines: dict[KeyPath, int], path: KeyPath) -> KeyPath:
    """Return the path under which a file has a key, perhaps by former names; else `path`."""
    written_paths = {_path_of_today(path): path for path in lines}
    for depth in range(len(path), 0, -1):
        if path[:depth] in written_paths:
            return written_paths[path[:depth]] + path[depth:]
    return path


def _path_of_today(path: KeyPath) -> KeyPath:
    first = _FORMER_SECTIONS.get(path[0], path[0])
    sections, key = (first, *path[1:])[:-1], _FORMER_KEYS.get(path[-1])
    if key and key.section == ".".join(sections):
        return (*sections, key.last_name)
    if first in _OF_RULES and len(path) == 3:
        return (*path[:2], FORMER_WORDS.get(path[2], path[2]))
    return first, *path[1:]
