"""What a session did to files and with git, by its entries: one value for each file or git command. Pure."""

from __future__ import annotations

from ..text.paths import resolved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..transcripts.entries import Entry

READ, EDIT, REMOVE, GIT, COMMAND = "read", "edit", "remove", "git", "command"
# Commands of git that change nothing where they are run.
LOOKS = ("blame", "branch", "diff", "fetch", "log", "ls-files", "push", "remote", "rev-parse", "show", "status")


class Touch:
    """What one tool call did. `kind` is READ, EDIT or REMOVE of what lies at `path`, GIT with the `words` of a git
    command in the directory `path`, or COMMAND, a command whatever it does. `is_command` tells that a command did it,
    and `is_doubtful` that it did so only where another one let it.

    `time` is when the call was made, in seconds since the epoch; `offset` and `call_id` find it in its transcript, and
    behind it its result. That is the session's, or, where a sub-agent made the call, the one at `transcript`. One that
    `is_elsewhere` was done to another machine's copy of the file.
    """

    __slots__ = (
        "call_id", "is_command", "is_doubtful", "is_elsewhere", "kind", "offset", "path", "time", "transcript", "words",
    )  # fmt: skip

    def __init__(
        self, kind: str, path: str, time: float, offset: int, call_id: str, is_command: bool = False,
        words: tuple[str, ...] = (), transcript: str = "", is_doubtful: bool = False,
    ) -> None:  # fmt: skip
        self.kind = kind
        self.path = path
        self.time = time
        self.offset = offset
        self.call_id = call_id
        self.is_command = is_command
        self.words = tuple(words)
        self.transcript = transcript
        self.is_doubtful = is_doubtful
        self.is_elsewhere = False


def touches_of(entries: Iterable[Entry], is_wanted: Callable[[str], bool]) -> list[Touch]:
    """What the tool calls in `entries` did, in their order. Of the commands only those are looked into that
    `is_wanted`: the rest is COMMAND."""
    found: list[Touch] = []
    for entry in entries:
        if entry.timestamp is None:
            continue
        for tool in entry.tools:
            place = (entry.timestamp, entry.offset, tool.call_id)
            if tool.kind in (EDIT, READ):
                path = resolved(tool.argument, entry.cwd)
                if path:
                    found.append(Touch(tool.kind, path, *place))
            elif tool.kind == COMMAND:
                found.append(Touch(COMMAND, "", *place, True))
                if is_wanted(tool.argument):
                    from ..text.shell_effects import effects_of

                    effects = effects_of(tool.argument, entry.cwd)
                    for effect in effects:
                        found.append(Touch(effect.kind, effect.path, *place, True, effect.words))
                        found[-1].is_doubtful = effect.is_doubtful
    return found
