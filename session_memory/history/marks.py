"""The person's marks on sessions: labels, pins, and rows of the page that they have seen.

They are kept in one file in the person's state, are exported with their session and deleted with
it. They are not part of the store, so a team never gets them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ..common.errors import SessionMemoryError, described
from ..common.system.files import Closing, lock, move_away, names_in, read_whole, write_atomically
from ..common.system.json import decode, encode
from ..common.text.format import one_line, shorten
from ..common.text.sanitize import for_storage
from ..sessions.settings.homes import Home

if TYPE_CHECKING:
    from ..app.upkeep.run import Run

LABEL_CHARACTERS = 40
MOST_LABELS = 12  # of a session
_NAME = "marks.json"
_LOCK_SECONDS = 5.0
_SEEN_SECONDS = 90 * 86_400

SessionKey = tuple[str, str]  # its group and its id


class MarksError(SessionMemoryError):
    """A newer version wrote the marks."""


class SessionMarks(NamedTuple):
    """The labels of a session, and when it was pinned in seconds since 1970, 0 if it is not."""

    labels: tuple[str, ...] = ()
    pinned_at: int = 0


class Seen(NamedTuple):
    """A row that was seen: the time in seconds since 1970, its `news`, and its sessions' ids."""

    at: int
    news: int
    sessions: tuple[str, ...] = ()


NO_MARKS = SessionMarks()


@dataclass
class Marks:
    """All marks of a person: labels and pins by session, and the seen rows by their keys."""

    VERSION = 1

    of_sessions: dict[SessionKey, SessionMarks] = field(default_factory=dict)
    seen: dict[str, Seen] = field(default_factory=dict)

    @classmethod
    def read(cls, home: Home) -> Marks:
        """Return the marks in a home's state; none if their file is missing or damaged.

        Raises MarksError, OSError."""
        try:
            return cls.load(decode(read_whole(_file(home)).decode()))
        except FileNotFoundError:
            return cls()
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()

    @classmethod
    def readable(cls, home: Home) -> tuple[Marks, str]:
        """Return the marks and '', or no marks and the problem that keeps them from being read."""
        try:
            return cls.load(decode(read_whole(_file(home)).decode())), ""
        except FileNotFoundError:
            return cls(), ""
        except MarksError as error:
            return cls(), f"{error}: {error.hint}"
        except OSError as error:
            return cls(), described(error)
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls(), f"{_file(home)} is damaged; the next change renames it and begins anew"

    @classmethod
    def load(cls, kept: Any) -> Marks:
        """Return the marks from a dump. Raises MarksError, or ValueError for another form."""
        version = kept["version"]
        if version != cls.VERSION:
            if isinstance(version, int) and version > cls.VERSION:
                hint = "update session-memory, or use the version that wrote them"
                raise MarksError("a newer version wrote the labels and pins", hint)
            raise ValueError("the marks have another form")
        return cls(
            {
                (home, id): SessionMarks(tuple(map(str, marks["labels"])), int(marks["pinned_at"]))
                for home, sessions in kept["sessions"].items()
                for id, marks in sessions.items()
            },
            {
                key: Seen(int(at), int(news), tuple(map(str, sessions)))
                for key, (at, news, sessions) in kept["seen"].items()
            },
        )

    def dump(self) -> dict[str, Any]:
        """Return the marks as an object to store."""
        sessions: dict[str, dict[str, Any]] = {}
        for (home, id), marks in self.of_sessions.items():
            sessions.setdefault(home, {})[id] = marks._asdict()
        return {"version": self.VERSION, "sessions": sessions, "seen": self.seen}

    @classmethod
    @contextmanager
    def changing(cls, home: Home) -> Iterator[Marks]:
        """Yield the marks, and write them afterwards. Raises LockedError, MarksError, OSError.

        A damaged file is renamed and kept."""
        with Closing(lock(_file(home) + ".lock", _LOCK_SECONDS)):
            try:
                marks = cls.load(decode(read_whole(_file(home)).decode()))
            except FileNotFoundError:
                marks = cls()
            except (ValueError, TypeError, KeyError, AttributeError):
                move_away(_file(home))
                marks = cls()
            yield marks
            write_atomically(_file(home), encode(marks.dump()).encode())

    def of(self, session: SessionKey) -> SessionMarks:
        return self.of_sessions.get(session, NO_MARKS)

    def add_label(self, sessions: Iterable[SessionKey], label: str) -> None:
        """Add a label to sessions that have fewer than MOST_LABELS, unless it is empty."""
        label = _stored_label(label)
        for session in sessions:
            marks = self.of(session)
            if label and len(marks.labels) < MOST_LABELS:
                labels = tuple(sorted({*marks.labels, label}))
                self._set(session, marks._replace(labels=labels))

    def remove_label(self, sessions: Iterable[SessionKey], label: str) -> None:
        for session in sessions:
            marks = self.of(session)
            labels = tuple(known for known in marks.labels if known != label)
            self._set(session, marks._replace(labels=labels))

    def pin(self, sessions: Iterable[SessionKey], at: int) -> None:
        """Pin sessions at a time in seconds since 1970; 0 removes the pin."""
        for session in sessions:
            self._set(session, self.of(session)._replace(pinned_at=at))

    def is_seen(self, key: str, news: int) -> bool:
        """Check if a row was seen with its present news."""
        return key in self.seen and self.seen[key].news >= news

    def see(self, key: str, seen: Seen) -> None:
        """Note that a row was seen, and forget rows that were seen long ago."""
        until = time.time() - _SEEN_SECONDS
        self.seen = {known: each for known, each in self.seen.items() if each.at > until}
        self.seen[key] = seen

    @classmethod
    def forget(cls, home: Home, sessions: Iterable[SessionKey]) -> None:
        """Delete the marks of sessions, and the seen rows with them. Raises as `changing`.

        Damaged files of marks may still have them, so these are deleted too."""
        gone = set(sessions)
        if gone and os.path.lexists(_file(home)):
            ids = {id for _, id in gone}
            with cls.changing(home) as marks:
                for session in gone:
                    marks.of_sessions.pop(session, None)
                marks.seen = {
                    key: each for key, each in marks.seen.items() if ids.isdisjoint(each.sessions)
                }
        for name in names_in(home.state_dir) if gone else ():
            if name.startswith(f"{_NAME}.corrupt"):
                os.unlink(f"{home.state_dir}/{name}")

    def _set(self, session: SessionKey, marks: SessionMarks) -> None:
        if marks == NO_MARKS:
            self.of_sessions.pop(session, None)
        else:
            self.of_sessions[session] = marks


def _file(home: Home) -> str:
    return f"{home.state_dir}/{_NAME}"


def _stored_label(text: str) -> str:
    """Return a label as it is stored: one line, without secrets; '' if nothing is left."""
    return shorten(one_line(for_storage(text)), LABEL_CHARACTERS)


def forget(run: Run, sessions: list[list[str]]) -> None:
    """Delete the labels and pins of sessions, each given by its home and id."""
    Marks.forget(run.location.home, [(home_name, id) for home_name, id in sessions])
