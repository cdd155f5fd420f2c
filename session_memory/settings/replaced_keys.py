"""Keys that other memories of sessions have and this one has not, with what takes their place."""

from __future__ import annotations

from .keys import KEYS

_STORE = "transcripts are stored where `session-memory ingest` or `watch` runs, and nowhere else"
_INDEXING = "`session-memory watch` indexes as transcripts grow, `session-memory ingest` when it is run"

# By the whole name, or by the last part of it wherever it stands.
_REPLACED = {
    "memory.enabled": f"{_STORE}; `sessions` and `projects` exclude from it",
    "memory.config": "its keys stand in `memory` itself, such as memory.watchPath",
    "session_tracking": f"its chunking and filtering stand in `memories`; {_INDEXING}",
    "session_tracking_enabled": "a rule in `projects` excludes a directory: {~/private: {ignore: true}}",
    "global": f"{_STORE}; memory.watchPath says where they lie",
    "track_session_logs": _STORE,
    "session_log_sources": "memory.watchPath",
    "base_path": "memory.watchPath",
    "jsonl_path": "memory.watchPath",
    "project_root": "`projects` maps the directory itself to its rule",
    "indexing": _INDEXING,
    "frequency": _INDEXING,
    "batch_interval_minutes": _INDEXING,
    "incremental": "reading is always incremental",
    "mode": "runtimes are recognised by their files",
    "version": "the file has none",
}


def replacement(name: str) -> str:
    """What a person is told behind the name of an unknown key: `: what takes its place`, or `, perhaps the.key` that
    stands elsewhere; '' where nothing is known."""
    last = name.rpartition(".")[2]
    known = _REPLACED.get(name) or _REPLACED.get(last)
    if known:
        return f": {known}"
    elsewhere = [key.name for key in KEYS if key.last_name == last and key.section]
    return f", perhaps {elsewhere[0]}" if len(elsewhere) == 1 else ""
