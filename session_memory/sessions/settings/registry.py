"""The registry of agent homes: only directories that the person registered count.

A repository can contain any file. So only these count: the homes in the install ledger (`install
--home`, `new`), those that the person's settings list under `homes`, the hosts that the person made
or ran, `SESSION_MEMORY_HOME`, and the homes that a hook's command named (as in the copy of a home:
its runtime has asked whether those settings are trusted)."""

from __future__ import annotations

from ...common.system.files import is_file, os, read_whole, real_path, write_atomically
from ...common.system.json import as_list, decode, encode
from .homes import ENV_HOME, Home, home_at, homes_above, host_of, person_home, user_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_HOSTS_FILE = "/hosts.json"
_NAMED_FILE = "/named_homes.json"
_LEDGER = "/session-memory/installed.json"


def agent_home(
    start: str, environ: Mapping[str, str], *, stop: str = "", folder: str = "sessions"
) -> Home | None:
    """Return the agent home that contains `start`; None if there is none.

    It is the nearest registered directory upwards, below `stop`, with named sessions. `folder` is
    the runtime's folder for named sessions."""
    for home in homes_above(start, environ, stop, folder):
        if _is_registered(home.root, environ):
            host = host_of(home.root)
            # the settings of the host's operator count
            if host not in ("", home.root) and is_registered_host(host, environ):
                return home_at(home.root, environ, sessions_dir=home.sessions_dir, host=host)
            return home
    return None


def unregistered_home(
    start: str, environ: Mapping[str, str], *, stop: str, folder: str = "sessions"
) -> str:
    """Return the nearest unregistered directory upwards that looks like an agent home, or ''."""
    above = [home.root for home in homes_above(start, environ, stop, folder)]
    return next((root for root in above if not _is_registered(root, environ)), "")


def _is_registered(directory: str, environ: Mapping[str, str]) -> bool:
    """Return True if the person registered `directory` (absolute) as an agent home."""
    if not directory.startswith("/") and directory[1:2] != ":":
        return False
    real, named = real_path(directory), environ.get(ENV_HOME, "")
    if named[:1] == "/" and real_path(named) == real:
        return True
    place = person_home(environ)
    listed = [
        f"{place.root}{home[1:]}" if home[:2] in ("~", "~/") else home
        for home in place.settings().homes or ()
    ]
    if real in [real_path(home) for home in [*listed, *_in_ledger(_ledger_file(environ))]]:
        return True
    host, _, group = real.rpartition("/groups/")
    if host and "/" not in group and is_registered_host(host, environ):
        return True
    return real in _read_noted(place.state_dir + _NAMED_FILE)


def is_registered_host(directory: str, environ: Mapping[str, str]) -> bool:
    """Check if a directory is a host that the person registered."""
    return real_path(directory) in registered_hosts(environ)


def registered_hosts(environ: Mapping[str, str]) -> list[str]:
    """Return the directories of the hosts that the person registered."""
    return _read_noted(person_home(environ).state_dir + _HOSTS_FILE)


def register_host(directory: str, environ: Mapping[str, str]) -> None:
    """Note that the person made or runs the host in `directory`. Raises OSError."""
    _note(directory, person_home(environ).state_dir + _HOSTS_FILE)


def register_named(directory: str, environ: Mapping[str, str]) -> None:
    """Note that a hook's command named the agent home `directory`, so other code finds it too.

    Raises OSError."""
    if not _is_registered(directory, {**environ, ENV_HOME: ""}):
        _note(directory, person_home(environ).state_dir + _NAMED_FILE)


def _note(directory: str, path: str) -> None:
    noted = _read_noted(path)
    if real_path(directory) not in noted:
        write_atomically(path, encode([*noted, real_path(directory)]).encode())


def _ledger_file(environ: Mapping[str, str]) -> str:
    """Return the path of the install ledger: beside the running program, else the default."""
    # app/session_memory/sessions/settings/registry.py
    here = __file__.replace("\\", "/").rsplit("/", 5)[0] + "/installed.json"
    if is_file(here):
        return here
    data = environ.get("XDG_DATA_HOME" if hasattr(os, "fork") else "LOCALAPPDATA", "")
    is_absolute = data[:1] == "/" or data[1:2] == ":"
    return (data if is_absolute else f"{user_dir(environ)}/.local/share") + _LEDGER


def _in_ledger(path: str) -> list[str]:
    """Return the homes of agents in the ledger: not the directories of runtimes' settings."""
    try:
        homes = decode(read_whole(path).decode())["homes"]
        folders = {
            home: record["settings_file"].rpartition("/")[0] for home, record in homes.items()
        }
        return [home for home, folder in folders.items() if folder not in ("", home)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _read_noted(path: str) -> list[str]:
    """Return the texts in a file's JSON list; [] if it cannot be read."""
    try:
        return [
            text for text in as_list(decode(read_whole(path).decode())) if isinstance(text, str)
        ]
    except (OSError, ValueError):
        return []
