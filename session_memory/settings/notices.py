"""Reports faults in a person's settings: invalid keys, and files that are no longer read."""

from __future__ import annotations

from ..system.files import LARGEST_BYTES, read_whole, write_atomically
from ..system.json import encode
from .registry import read_noted, unregistered_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .homes import Home

# Where earlier versions had a person's settings, below their home directory.
OLD_CONFIG_FILES = (".claude/.session-memory/config.yaml", ".pi/agent/.session-memory/config.yaml")
_TOLD_FILE = "/told-faults.json"
_MOST_TOLD = 100
_TOLD_HOMES_FILE = "/told-homes.json"  # the directories that only look like agent homes


def notices(home: Home) -> list[str]:
    """A line for each fault in the settings that count for `home`, and for each file with rules that is not read."""
    return [*home.settings().faults, *_leftovers(home)]


def untold(home: Home, others: Sequence[str] = ()) -> str:
    """Return what the start of a session says on one line: faults, in the settings and `others`, that no session was
    told of yet, and each file with rules that is not read, until it is gone; '' for nothing. It counts as told then."""
    faults = [*home.settings().faults, *others]
    path = home.state_dir + _TOLD_FILE
    told = read_noted(path)
    new = [fault for fault in faults if fault not in told]
    if told != faults:
        _write_told(path, faults)
    said = [*new, *_leftovers(home)]
    if not said:
        return ""
    more = f" (and {len(said) - 1} more: see `session-memory config`)" if len(said) > 1 else ""
    return f"session-memory: {' '.join(said[0].split())}{more}"


def looks_like_home(start: str, environ: Mapping[str, str], folder: str) -> str:
    """Return a line that names the directory which `start` is in and which looks like an agent home without being
    registered, with what makes it one; '' if there is none."""
    root = unregistered_home(start, environ, stop=environ.get("HOME", ""), folder=folder)
    if not root:
        return ""
    from shlex import quote

    from ..text.sanitize import for_prompt

    shown = quote(" ".join(for_prompt(root).split()))
    return f"{shown} looks like an agent's home, and does not count as one: session-memory install --home {shown}"


def untold_home(home: Home, start: str, environ: Mapping[str, str], folder: str) -> str:
    """Return the same for the start of a session, once for each such directory. What it returns counts as told."""
    line, path = looks_like_home(start, environ, folder), home.state_dir + _TOLD_HOMES_FILE
    told = read_noted(path) if line else []
    if not line or line in told:
        return ""
    _write_told(path, [*told, line][-_MOST_TOLD:])
    return f"session-memory: {line}"


def _write_told(path: str, lines: list[str]) -> None:
    try:
        write_atomically(path, encode(lines).encode())
    except OSError:  # then the next session is told again
        pass


def _leftovers(home: Home) -> Iterator[str]:
    """Files with rules for sessions where earlier versions read them, or where a group's agent has put them."""
    files = [f"{home.user_dir}/{name}" for name in OLD_CONFIG_FILES if home.user_dir]
    for path in dict.fromkeys([*files, f"{home.root}/.session-memory/config.yaml"]):
        if path != home.config_file and _may_hold_rules(path):
            yield f"{path} is not read: move its rules for sessions to {home.config_file}, and remove it"


def _may_hold_rules(path: str) -> bool:
    try:
        text = read_whole(path, LARGEST_BYTES).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # a link, or too large, or it cannot be read
        return True
    said = [line.partition("#")[0] for line in text.splitlines()]
    return any("sessions" in line or "projects" in line for line in said)
