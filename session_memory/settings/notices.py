"""What a person should know of their settings: keys that are not understood, and files that are no longer read."""

from __future__ import annotations

from ..system.files import LARGEST_BYTES, read_whole, write_atomically
from ..system.json import decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .homes import Home

# Where earlier versions had a person's settings, below their home directory.
OLD_CONFIG_FILES = (".claude/.session-memory/config.yaml", ".pi/agent/.session-memory/config.yaml")
_TOLD_FILE = "/told-faults.json"


def notices(home: Home) -> list[str]:
    """A line for each fault in the settings that count for `home`, and for each file with rules that is not read."""
    return [*home.settings().faults, *_leftovers(home)]


def untold(home: Home, others: Sequence[str] = ()) -> str:
    """Return what the start of a session says on one line: faults, in the settings and `others`, that no session was
    told of yet, and each file with rules that is not read, until it is gone; '' for nothing. It counts as told then."""
    faults = [*home.settings().faults, *others]
    path = home.state_dir + _TOLD_FILE
    try:
        told = decode(read_whole(path).decode())
    except (OSError, ValueError):
        told = []
    new = [fault for fault in faults if not isinstance(told, list) or fault not in told]
    if told != faults:
        try:
            write_atomically(path, encode(faults).encode())
        except OSError:  # then the next session is told again
            pass
    said = [*new, *_leftovers(home)]
    if not said:
        return ""
    more = f" (and {len(said) - 1} more: see `session-memory config`)" if len(said) > 1 else ""
    return f"session-memory: {' '.join(said[0].split())}{more}"


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
