"""Moments at which a session could know another's edit of its file, and its next action.

A moment begins with the first prompt, or the first edit of the file, after the other's edit, unless
the session has read the file since. It ends with the session's next action on that file: the
session looked first (a read, `git diff`, a command that prints the file) or edited first, even
without success. The same rule finds moments with and without an update, only from the store's tool
uses, so only the update differs. The hook also checks the disk, but its former state is not
recorded.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from ...awareness.events.failed_call import plausible
from ...common.text.paths import resolved
from ...common.text.shell_commands import prints
from ...history.store.values import StoredEntry
from ...history.told import ToldText
from ...history.told_lines import FILE

Session = tuple[str, str]  # the group and the key of its transcript

PROMPT, EDIT, READ, COMMAND = "prompt", "edit", "read", "command"
LONGEST = 24 * 3600 * 1000  # since the other's edit, as far as the first prompt reads back
_SLACK = 1000  # milliseconds between a record and the action it describes


class Step(NamedTuple):
    """An action of a session.

    It has the time (milliseconds since the epoch), the byte in its transcript, its `path`, and for
    a COMMAND the line. `is_done` means that it did not fail."""

    kind: str
    at: int
    offset: int
    path: str = ""
    is_done: bool = True


class Moment(NamedTuple):
    """A moment of a session.

    It has the file, the times and bytes of its beginning and end (`end` None: the session did
    nothing more with the file), the time of the other's edit, and whether the session looked first
    (None if unknown)."""

    session: Session
    path: str
    at: int
    offset: int
    edited_at: int
    end: int | None = None
    has_looked: bool | None = None

    def is_told_by(self, text: ToldText) -> bool:
        """Check if a text about the file arrived between the other's edit and the next action."""
        is_in_time = text.at is not None and text.at >= self.edited_at - _SLACK
        if not (text.has_arrived and is_in_time) or (
            self.end is not None and text.offset >= self.end
        ):
            return False
        names = [name for line in text.lines if line.kind == FILE for name in line.files]
        return any(is_named(self.path, name) for name in names)


class Edits:
    """The edits of all sessions, by path, of files that several sessions have touched."""

    def __init__(self, steps: Iterable[tuple[Session, Sequence[Step]]]) -> None:
        touched: dict[str, set[Session]] = {}
        edits_by_path: dict[str, list[tuple[int, Session]]] = {}
        for session, session_steps in steps:
            for step in session_steps:
                if step.kind in (EDIT, READ) and step.is_done:
                    touched.setdefault(step.path, set()).add(session)
                    if step.kind == EDIT:
                        edits_by_path.setdefault(step.path, []).append((step.at, session))
        self._edits = {
            path: sorted(edits) for path, edits in edits_by_path.items() if len(touched[path]) > 1
        }
        self._by_name: dict[str, list[str]] = {}
        for path in self._edits:
            self._by_name.setdefault(path.rpartition("/")[2], []).append(path)

    def __contains__(self, path: str) -> bool:
        return path in self._edits

    def by_another(self, path: str, session: Session, after: int, until: int) -> int | None:
        """Return when another session last edited a file in `(after, until]`, or None."""
        edits = self._edits.get(path, [])
        low, high = (bisect_right(edits, moment, key=itemgetter(0)) for moment in (after, until))
        return next((at for at, who in reversed(edits[low:high]) if who != session), None)

    def are_by(self, path: str, session: Session) -> bool:
        return any(who == session for _, who in self._edits.get(path, ()))

    def named(self, session: Session, name: str) -> list[str]:
        """Return the paths, edited by another session, that a line to a session may have meant."""
        possible = self._edits if "…" in name else self._by_name.get(name.rpartition("/")[2], ())
        return [path for path in possible if is_named(path, name) and self.by_others(path, session)]

    def by_others(self, path: str, session: Session) -> bool:
        return any(who != session for _, who in self._edits[path])


class WorkedOnFiles:
    """The files that sessions have read or edited, by name, each with the time since then."""

    def __init__(self, every: Iterable[Sequence[Step]]) -> None:
        self._since: dict[str, dict[str, int]] = {}
        for step in (
            step for steps in every for step in steps if step.kind in (EDIT, READ) and step.is_done
        ):
            since = self._since.setdefault(step.path.rpartition("/")[2], {})
            since[step.path] = min(step.at, since.get(step.path, step.at))

    def meant_by(self, step: Step) -> str:
        """Return the one file known by then that a failed step meant, by the hook's rule, or ''."""
        if step.is_done or step.kind not in (EDIT, READ):
            return ""
        since = self._since.get(step.path.rpartition("/")[2], {})
        known = [path for path, at in since.items() if at < step.at]
        return "" if step.path in known else plausible(step.path, known)


def is_used(steps: Iterable[Step], at: int, name: str) -> bool:
    """Check if a session used the file of this name between a time and the next prompt.

    Using it means to read or edit it."""
    for step in steps:
        if step.at > at and step.kind == PROMPT:
            return False
        if (
            step.at > at
            and step.kind in (EDIT, READ)
            and step.is_done
            and is_named(step.path, name)
        ):
            return True
    return False


def steps_of(items: Iterable[StoredEntry], directory: str) -> list[Step]:
    """Return the steps of a session started in `directory`, from its items in order.

    An item without a time cannot be compared with other sessions' items."""
    steps = []
    for item in items:
        if item.timestamp is None:
            continue
        at, offset, is_done, cwd = (
            item.timestamp,
            item.offset,
            item.outcome != "error",
            item.cwd or directory,
        )
        if item.role == "user":
            steps.append(Step(PROMPT, at, offset))
        elif item.kind in (EDIT, READ):
            steps.append(Step(item.kind, at, offset, resolved(item.text, cwd), is_done))
        elif item.kind == COMMAND:
            steps.append(Step(COMMAND, at, offset, item.text, is_done))
            steps += [Step(EDIT, at, offset, path) for path in item.edited_files(directory)]
    return steps


def moments_of(session: Session, steps: Iterable[Step], edits: Edits) -> Iterator[Moment]:
    """Yield the moments of a session."""
    known: dict[str, int] = {}  # up to when the session knows each of its files
    open_ones: dict[str, Moment] = {}

    def begin(path: str, step: Step) -> None:
        edited_at = edits.by_another(path, session, max(known[path], step.at - LONGEST), step.at)
        if edited_at is not None:
            open_ones[path] = Moment(session, path, step.at, step.offset, edited_at)
            known[path] = edited_at

    for step in steps:
        if step.kind == PROMPT:
            for path in [path for path in known if path not in open_ones]:
                begin(path, step)
        elif step.kind == COMMAND:
            for path in [path for path in open_ones if step.is_done and prints(step.path, path)]:
                yield open_ones.pop(path)._replace(end=step.offset, has_looked=True)
                known[path] = step.at
        elif step.path in edits:
            if step.path in open_ones:
                yield open_ones.pop(step.path)._replace(
                    end=step.offset, has_looked=step.kind == READ
                )
            if step.is_done:
                # it learns of what came before with this call's result
                if step.kind == EDIT and step.path in known:
                    begin(step.path, step)
                known[step.path] = step.at
    yield from open_ones.values()


def is_named(path: str, name: str) -> bool:
    """Check if a line calls the file at an absolute `path` by this, perhaps shortened, `name`."""
    start, cut, _ = name.rpartition("../")[2].partition("…")
    return f"/{start}" in path if cut else path == name or path.endswith(f"/{start}")
