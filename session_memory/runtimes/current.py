"""Which session a program runs in that a runtime started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..system.files import read_whole
from ..system.json import decode
from ..text.names import is_name
from . import all_runtimes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from . import Runtime


def running(environ: Mapping[str, str], parent: int) -> tuple[Runtime | None, str]:
    """The runtime that started this process, None for none that we know, and the id of the session that it is in.

    A server goes on when its user begins a new session, while its environment stays: so the runtime's own note, under
    the `parent` process id, goes first.
    """
    for runtime in all_runtimes():
        started_in = environ.get(runtime.OWN_ID_VARIABLE, "")
        if started_in:
            folder = runtime.LIVE_FOLDER
            note = f"{runtime.config_dir({}, environ)}/{folder}/{parent}.json"
            return runtime, (_noted(note) if folder else "") or started_in
    return None, ""


def _noted(path: str) -> str:
    try:
        session_id = decode(read_whole(path).decode())["sessionId"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return session_id if is_name(session_id) else ""
