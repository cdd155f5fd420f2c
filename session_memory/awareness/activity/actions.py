"""Actions of a session on files and with git: one value per file or git command of a call."""

from __future__ import annotations

from ...common.text.paths import resolved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ...sessions.runtimes.base import Runtime
    from ...sessions.transcripts.entries import Entry
    from ...sessions.transcripts.gate import Gate

READ, EDIT, REMOVE, GIT, COMMAND = "read", "edit", "remove", "git", "command"
NAMED = "named"
# Git commands that change nothing in their directory.
READ_ONLY = (
    "blame",
    "branch",
    "diff",
    "fetch",
    "log",
    "ls-files",
    "push",
    "remote",
    "rev-parse",
    "show",
    "status",
)
# with one of these, `git branch` does more than list
_SETS_BRANCHES = frozenset(
    ("-m", "-M", "--move", "-f", "--force", "-C", "-d", "-D", "--delete", "-df", "-fd")
)
# How commands begin or continue that rewrite files named by globs, variables, `find` or settings.
REWRITERS = {
    "sed -": ("i", "E -i", "Ei", "-in-place"),
    "perl -": ("pi", "i", "0pi"),
    **dict.fromkeys(
        (" --write", " --fix", " format", " fmt", "gofmt -w", "black ", "isort "), ("",)
    ),
    # git, in files of submodules
    **dict.fromkeys((" submodule ", " --recurse-submodules"), ("",)),
}
DECODED_BYTES = 2 * 1024 * 1024  # of one sub-agent at most; the rest is read the next time
READ_BYTES = 16 * 1024 * 1024  # of one sub-agent at most


class FileAction:
    """One action of a tool call.

    `kind` is READ, EDIT or REMOVE of the file at `path`; GIT with the `words` of a git command in
    the directory `path`; NAMED for a command that may write any file with the name `path`; or
    COMMAND for any command, which is then its only word. `is_command` means that a command did it,
    `is_doubtful` that only the file's time can show if it did. `command` is the command line, '' if
    unknown.

    `time` is when the call was made, in seconds since 1970. `offset` and `call_id` locate it in its
    transcript, with its result after it. The transcript is the session's, or for a sub-agent's call
    the one at `transcript`. `is_elsewhere` marks an action on another machine's copy of the file.
    `copy` is the path of the file's copy in another `worktree` of the repository; both are ''
    without one."""

    __slots__ = (
        "call_id",
        "command",
        "copy",
        "is_command",
        "is_doubtful",
        "is_elsewhere",
        "kind",
        "offset",
        "path",
        "time",
        "transcript",
        "words",
        "worktree",
    )

    def __init__(
        self,
        kind: str,
        path: str,
        place: tuple[float, int, str],
        *,
        is_command: bool = False,
        words: Iterable[str] = (),
        transcript: str = "",
        is_doubtful: bool = False,
        is_elsewhere: bool = False,
    ) -> None:
        """`place` is its time, offset and call id."""
        self.kind = kind
        self.path = path
        self.time, self.offset, self.call_id = place
        self.is_command = is_command
        self.words = tuple(words)
        self.transcript = transcript
        self.is_doubtful = is_doubtful
        self.is_elsewhere = is_elsewhere
        self.copy = self.worktree = self.command = ""

    @classmethod
    def load(cls, fields: list[Any]) -> FileAction:
        """Return the action from a dump. Raises ValueError, TypeError."""
        kind, path, time, offset, call_id, is_command, words, transcript, *others = fields
        is_doubtful, *copy = others
        place = (float(time), int(offset), str(call_id))
        action = cls(
            str(kind), str(path), place, is_command=is_command is True, words=map(str, words)
        )
        action.transcript, action.is_doubtful = str(transcript), is_doubtful is True
        # the state of an earlier version lacks these
        action.copy, action.worktree = map(str, copy or ("", ""))
        return action

    def dump(self) -> list[object]:
        """Return the kept form, without the command line."""
        place = [self.kind, self.path, self.time, self.offset, self.call_id]
        how = [self.is_command, self.words, self.transcript, self.is_doubtful]
        return [*place, *how, self.copy, self.worktree]


def actions_of(
    entries: Iterable[Entry], is_wanted: Callable[[str], bool] | None = None
) -> list[FileAction]:
    """Return the actions of the tool calls in `entries`, in their order.

    If `is_wanted` is given, only commands that it accepts are parsed; any other command gives only
    its COMMAND action."""
    actions: list[FileAction] = []
    for entry in entries:
        if entry.timestamp is None:
            continue
        for tool in entry.tools:
            place = (entry.timestamp, entry.offset, tool.call_id)
            if tool.kind in (EDIT, READ):
                if path := resolved(tool.argument, entry.cwd):
                    actions.append(FileAction(tool.kind, path, place))
            elif tool.kind == COMMAND:
                first = len(actions)
                actions.append(
                    FileAction(COMMAND, "", place, is_command=True, words=(tool.argument,))
                )
                if is_wanted is None or is_wanted(tool.argument):
                    from ...common.text.shell_effects import effects_of
                    from ...common.text.shell_names import names_in

                    actions += [
                        FileAction(NAMED, name, place, is_command=True)
                        for name in names_in(tool.argument, rewrites=_rewrites(tool.argument))
                    ]
                    for effect in effects_of(tool.argument, entry.cwd):
                        actions.append(
                            FileAction(
                                effect.kind, effect.path, place, is_command=True, words=effect.words
                            )
                        )
                        actions[-1].is_doubtful = effect.is_doubtful
                    for action in actions[first:]:
                        action.command = tool.argument
    return actions


def by_time(action: FileAction) -> tuple[float, bool]:
    """Return the sort key of an action; a call's doubtful actions come first."""
    return action.time, not action.is_doubtful


def is_read_only(words: tuple[str, ...]) -> bool:
    """Check if a git command changes nothing in the worktree that it is run in."""
    if words[0] == "branch":
        return not _SETS_BRANCHES.intersection(words)
    if words[0] == "push":  # to its own repository it sets a branch
        return "." not in words
    if words[0] == "fetch":  # with `main:main` it sets a branch
        return not any([":" in word and "//" not in word for word in words])
    return words[0] in READ_ONLY


def may_concern(command: str, names: Iterable[str]) -> bool:
    """Check an unparsed command for the names of files and for git.

    Return True if the command may change a file with one of these names, or run git."""
    is_any = "git " in command or "rm " in command or "mv " in command or _rewrites(command)
    return is_any or any([name in command for name in names])


def _rewrites(command: str) -> bool:
    begun = [beginning for beginning in REWRITERS if beginning in command]
    return any(
        [beginning + form in command for beginning in begun for form in REWRITERS[beginning]]
    )


def actions_elsewhere(entries: Iterable[Entry], root: str) -> list[FileAction]:
    """Return the edits on another machine, by the files' paths in the repository at `root` here.

    The commands that ran there are unknown."""
    return [
        FileAction(
            EDIT, f"{root}/{tool.argument}", (entry.timestamp, entry.offset, ""), is_elsewhere=True
        )
        for entry in entries
        for tool in entry.tools
        if entry.timestamp is not None and tool.kind == EDIT and not tool.argument.startswith("/")
    ]


def is_of_agent(transcript: str, agent: str) -> bool:
    """Check if a transcript belongs to a sub-agent.

    The sub-agent's id is the end of its name, as in `agent-<id>.jsonl`."""
    return transcript.removesuffix(".jsonl").endswith((f"-{agent}", f"/{agent}"))


def sub_agent_actions(
    transcripts: Iterable[str],
    runtime: Runtime,
    offsets: dict[str, int],
    oldest: float,
    is_wanted: Callable[[str], bool] | None = None,
    gate: Gate | None = None,
) -> list[FileAction]:
    """Return the actions of sub-agents that their session's `gate` permits.

    They come after `offsets`, which advance. At first sight they are read since the time `oldest`.
    `is_wanted` is as in `actions_of`."""
    actions: list[FileAction] = []
    for path in transcripts:
        try:
            entries = sub_agent_entries(path, runtime, offsets, oldest)
        except OSError:
            continue
        if gate is not None:
            entries = gate.done(entries)
        for action in actions_of(entries, is_wanted):
            action.transcript = path
            actions.append(action)
    return actions


def sub_agent_entries(
    path: str, runtime: Runtime, offsets: dict[str, int], oldest: float
) -> list[Entry]:
    """Return the entries of a transcript after its offset, which advances. Raises OSError."""
    from itertools import takewhile

    from ...common.system.files import Opened, os
    from ...sessions.transcripts.entries import Entry
    from ...sessions.transcripts.lines import first_line, last_line_end, lines_forward
    from ...sessions.transcripts.reader import TranscriptReader

    with Opened(path) as descriptor:
        status = os.fstat(descriptor)
        start = offsets.get(path, 0)
        if status.st_size == start or (path not in offsets and status.st_mtime < oldest):
            return []
        start = start if start < status.st_size else 0
        end = last_line_end(descriptor, start, status.st_size, status.st_size) or start
        reader = TranscriptReader(runtime, first_line(descriptor), of_sub_agents=True)
        reader.reached = start
        lines = lines_forward(descriptor, start, end, start + READ_BYTES)
        read = list(reader.forward(takewhile(lambda _: reader.decoded < DECODED_BYTES, lines)))
        offsets.pop(path, None)
        offsets[path] = reader.reached
    entries = [entry for entry in read if isinstance(entry, Entry)]
    return [entry for entry in entries if (entry.timestamp or 0.0) >= oldest and not entry.is_copy]
