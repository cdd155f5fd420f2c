"""How the user of a runtime switches sessions by hand, and which one a program runs in that the runtime started."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..fastjson import decode
from ..files import read_whole
from ..names import is_name
from . import all_runtimes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from . import Runtime


class Switching(NamedTuple):
    """What a user types: to name the session, to begin a new one, and, in a terminal, to go on with an earlier one.

    `live_folder` is the one in the runtime's directory with `<pid>.json` of each open session, '' if there is none.
    """

    rename: str
    clear: str
    resume: str
    live_folder: str = ""


BY_NAME = {
    "claude-code": Switching("/rename {name}", "/clear", "claude --resume {id}", "sessions"),
    "pi": Switching("/name {name}", "/new", "pi --session {id}"),
}


def running(environ: Mapping[str, str], parent: int) -> tuple[Runtime | None, str]:
    """The runtime that started this process, None for none that we know, and the id of the session that it is in.

    A server goes on when its user begins a new session, while its environment stays: so the runtime's own note, under
    the `parent` process id, goes first.
    """
    for runtime in all_runtimes():
        started_in = environ.get(runtime.OWN_ID_VARIABLE, "")
        if started_in:
            folder = BY_NAME[runtime.NAME].live_folder
            note = f"{runtime.config_dir({}, environ)}/{folder}/{parent}.json"
            return runtime, (_noted(note) if folder else "") or started_in
    return None, ""


def _noted(path: str) -> str:
    try:
        session_id = decode(read_whole(path).decode())["sessionId"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return session_id if is_name(session_id) else ""
