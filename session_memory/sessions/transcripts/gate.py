"""The gate: one object decides which parts of a session, its records and its title may be shown.

It has the rules, the forgotten sessions, the parts that a fork copied from a hidden session, and
the session that each record names as its own. All code that shows a transcript asks it: prompts,
commands, tools, archives, the page.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from ...common.system.files import Opened, names_in, os, read_at
from ...common.text.sanitize import beginning, shortened
from ..runtimes.base import Runtime
from ..settings.forgotten import ForgottenSessions
from ..settings.rules import Rule, stricter
from .entries import Entry, Session
from .lines import first_line, head_lines, holds_bytes
from .mirror import hidden_by
from .reader import (
    FIRST_PROMPT_RANK,
    FURTHER_BYTES,
    HEAD_BYTES,
    OWNER_BYTES,
    USER_RANK,
    Title,
    TitleOwner,
    TranscriptHead,
    TranscriptReader,
    first_entry,
    is_request,
    telling_request,
    title_of,
)


class Rules(Protocol):
    """The methods of rules that the gate calls: see `Privacy`."""

    def rule(self, start_directory: str, *names: str) -> Rule: ...
    def of_names(self, *names: str) -> Rule: ...
    def of_directory(self, directory: str, start_directory: str = "") -> Rule: ...
    def has_rules(self, start_directory: str = "") -> bool: ...
    def has_name_rules(self, start_directory: str = "") -> bool: ...
    def forgotten_until(self, session_id: str, start_directory: str) -> int | None: ...
    def forgotten(self, start_directory: str) -> ForgottenSessions: ...


TITLE_CHARACTERS = 60
# so many more characters are searched for secrets that none is cut in two unnoticed
SECRET_CHARACTERS = 400
_FREE = Rule()


class Described:
    """A transcript's description of its session, before rules apply.

    It has the title on one line with its rank, the start directory ('' if unknown), when it `began`
    (seconds since 1970, or None), the id of its first entry, and whether it is a sub-agent's or
    begins with a compaction."""

    is_empty = False  # the transcript has no message and no title
    directories: frozenset[str] = frozenset()  # of the entries at its end

    def __init__(
        self,
        title: str = "",
        rank: int = USER_RANK,
        start: str = "",
        began: float | None = None,
        is_of_subagent: bool = False,
        first_id: str = "",
        is_compacted: bool = False,
    ) -> None:
        self.title = title
        self.rank = rank
        self.start = start
        self.began = began
        self.is_of_subagent = is_of_subagent
        self.first_id = first_id
        self.is_compacted = is_compacted


def describe(runtime: Runtime, path: str, rules: Rules | None = None) -> Described:
    """Return the description from the end and the beginning of a transcript.

    Its title is the first prompt if it has no other. The part between is searched for titles if one
    of `rules` may name them. Raises OSError."""
    with Opened(path) as descriptor:
        size = os.fstat(descriptor).st_size
        owner = TitleOwner(runtime.session_id_of(path), descriptor)
        reader = TranscriptReader(runtime, first_line(descriptor), owner=owner)
        head = TranscriptHead(runtime, descriptor, owner)
        has_rules = rules is not None and rules.has_rules(head.cwd)
        last = reader.from_end(descriptor, HEAD_BYTES, with_directories=has_rules)
        directories = {entry.cwd for entry in last}
        if rules is not None and rules.has_name_rules(head.cwd):
            reader.take_titles(descriptor, 0, size)
    given = runtime.given_name(path)
    rank, title = (USER_RANK, given) if given else head.best_title(reader.title)
    described = Described(
        for_title(title),
        rank,
        head.cwd,
        head.first_time,
        reader.is_of_subagent,
        head.first_id,
        head.begins_compacted,
    )
    described.directories = frozenset(directories)
    is_unread = reader.unreadable > 0 or size > HEAD_BYTES
    described.is_empty = not (
        title or head.first_id or head.first_time or head.begins_compacted or is_unread
    )
    return described


class Gate:
    """The permission to show one session, or parts of it.

    `rule` applies to all of it. It was forgotten up to `until`, in milliseconds since 1970 (None if
    it was not)."""

    def __init__(
        self,
        rules: Rules,
        session_id: str,
        start: str,
        names: Iterable[str] = (),
        family: Family | None = None,
        copied: Mapping[object, Rule] | None = None,
    ) -> None:
        """Create the gate of a session.

        `start` is its start directory, `names` are all its names except its id. `copied` are the
        entries shared with other sessions that rules hide, as `family` finds them."""
        self._rules = rules
        self._session_id = session_id
        self._start = start
        self._family = family
        self._copied = copied or {}
        self._directories: dict[str, Rule] = {}
        self.rule = rules.rule(start, *filter(None, (*names, session_id)))
        self.until = rules.forgotten_until(session_id, start)
        self._forgotten = rules.forgotten(start)
        self.repeats_forgotten = False
        self.had_hidden_part = False  # as an earlier look found

    def look_at(self, runtime: Runtime, path: str) -> Gate:
        """Note if the session's transcript at `path` begins with a forgotten message.

        Then it is a copy or a fork. A mirror that a rule has emptied hides the session, too. Raises
        OSError."""
        has_rules = not isinstance(self._rules, Unruled)
        if has_rules:
            self.rule = _with_mirror(self.rule, path)
        if self._forgotten and self.until is None:
            with Opened(path) as descriptor:
                first = first_entry(runtime, descriptor)
            self.repeats_forgotten = first is not None and self._forgotten.holds(
                first, self._session_id
            )
        return self

    @property
    def may_forget(self) -> bool:
        """Return whether an entry of the session may be forgotten."""
        return self.until is not None or bool(self._forgotten)

    @property
    def hides_forgotten(self) -> bool:
        """Return whether something of the session is forgotten."""
        return self.until is not None or self.repeats_forgotten

    @property
    def hides_some(self) -> bool:
        """Return whether a part of the session is forgotten or hidden, as far as it was judged."""
        hides_place = any([rule.is_private for rule in self._directories.values()])
        is_hidden = hides_place or self.had_hidden_part
        return is_hidden or self.hides_forgotten or bool(self._copied)

    def rule_of(self, entry: Entry) -> Rule:
        """Return the rule for an entry; it is ignored if it was forgotten."""
        if self.rule.ignore or self.is_forgotten(entry):
            return Rule(ignore=True)
        rule = self.rule_of_directory(entry.cwd)
        if entry.origin and entry.origin != self._session_id and self._family is not None:
            rule = stricter(rule, self._family.rule_of_id(entry.origin))
        return (
            stricter(rule, self._copied[_key_of(entry)]) if _key_of(entry) in self._copied else rule
        )

    def rule_of_directory(self, cwd: str) -> Rule:
        """Return the rule for entries from a directory."""
        if cwd not in self._directories:
            self._directories[cwd] = stricter(self.rule, self._rules.of_directory(cwd, self._start))
        return self._directories[cwd]

    def is_forgotten(self, entry: Entry) -> bool:
        return self.is_of_forgotten_time(entry) or self._forgotten.holds(entry, self._session_id)

    def is_of_forgotten_time(self, entry: Entry) -> bool:
        """Return whether the session is forgotten up to this entry."""
        return self.until is not None and (entry.timestamp or 0.0) * 1000 <= self.until

    def told(self, entries: Iterable[Entry]) -> list[Entry]:
        """Return the parts of `entries` that may be shown.

        Ignored entries are left out, and so is text that may not be quoted."""
        rules = [(entry, self.rule_of(entry)) for entry in entries]
        return [
            entry if rule.quote else entry.without_text()
            for entry, rule in rules
            if not rule.ignore
        ]

    def done(self, entries: Iterable[Entry]) -> list[Entry]:
        """Return the entries whose actions may be shown, with their text."""
        return [entry for entry in entries if not self.rule_of(entry).ignore]

    def quoted(self, entries: Iterable[Entry]) -> list[Entry]:
        """Return the entries whose text may be shown."""
        return [entry for entry in entries if not self.rule_of(entry).is_private]

    def title(self, title: Title, own_title: str) -> Title:
        """Return the part of a title that may be shown.

        If the session's text may not be quoted, only a person's title is shown. If a part of the
        session is hidden, `own_title` replaces a title that may have been made from that part."""
        if self.rule.ignore or (title[0] < USER_RANK and not self.rule.quote):
            return title[0], ""
        if self.hides_forgotten and self._forgotten.has_title(title[1]):
            return FIRST_PROMPT_RANK, own_title
        if title[0] < USER_RANK and self.hides_some:
            return FIRST_PROMPT_RANK, own_title
        return title

    def shown_title(self, runtime: Runtime, path: str, title: Title) -> Title:
        """Return the visible part of the title of the transcript at `path`, on one line.

        Raises OSError."""
        may_be_hidden = self.hides_forgotten or (title[0] < USER_RANK and self.hides_some)
        is_hidden = may_be_hidden and self.rule.quote and not self.rule.ignore
        return self.title(
            title, for_title(title_of(_own_prompt(runtime, path, self))) if is_hidden else ""
        )


class Unruled:
    """No rules, for a person who wants to see hidden sessions; forgotten ones are gone for all."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def forgotten_until(self, session_id: str, start_directory: str) -> int | None:
        return self._rules.forgotten_until(session_id, start_directory)

    def forgotten(self, start_directory: str) -> ForgottenSessions:
        return self._rules.forgotten(start_directory)

    def rule(self, start_directory: str, *names: str) -> Rule:
        return _FREE

    def of_names(self, *names: str) -> Rule:
        return _FREE

    def of_directory(self, directory: str, start_directory: str = "") -> Rule:
        return _FREE

    def has_rules(self, start_directory: str = "") -> bool:
        return False

    def has_name_rules(self, start_directory: str = "") -> bool:
        return False


class Family:
    """The transcripts of a runtime that may be forks of each other.

    Each is read once, and only if there are rules."""

    def __init__(
        self,
        rules: Rules,
        runtime: Runtime,
        path: str,
        names: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Create the family of the transcript at `path`.

        `names` has sessions' names by their transcripts' paths."""
        self._rules = rules
        self._runtime = runtime
        self._path = path
        self._names = names or {}
        self._paths: list[str] | None = None
        self._by_first_id: dict[str, list[str]] = {}
        self._described: dict[str, Described] = {}
        self._rule_by_path: dict[str, Rule] = {}
        self._rule_by_id: dict[str, Rule] = {}

    def note(self, path: str, described: Described) -> None:
        self._described[path] = described
        self._by_first_id.setdefault(described.first_id, []).append(path)

    def gate(self, path: str, described: Described) -> Gate:
        known, session_id = (
            (*self._names.get(path, ()), described.title),
            self._runtime.session_id_of(path),
        )
        if not self._rules.has_rules(described.start):
            return Gate(self._rules, session_id, described.start, known).look_at(
                self._runtime, path
            )
        copied = self.copied(self.kin(path, described.first_id, described.is_compacted))
        gate = Gate(self._rules, session_id, described.start, known, self, copied)
        for directory in described.directories:
            gate.rule_of_directory(directory)
        return gate.look_at(self._runtime, path)

    def kin(self, path: str, first_id: str, is_compacted: bool) -> list[str]:
        """Return the transcripts that begin with the same entry.

        If the entry follows a compaction, return the transcripts that contain it."""
        if not first_id:
            return []
        kin = [sibling for sibling in self._by_first_id.get(first_id, ()) if sibling != path]
        mark = f'"{first_id}"'.encode("utf-8", "replace")
        limit = OWNER_BYTES if is_compacted else _reach(path, mark)
        for sibling in self.siblings():
            if (
                sibling != path
                and (is_compacted or sibling not in self._described)
                and sibling not in kin
            ):
                try:
                    kin += [sibling] if self.holds(sibling, mark, limit) else []
                except OSError:
                    continue
        return kin

    def copied(self, kin: Iterable[str]) -> dict[object, Rule]:
        """Return the entries in `kin` that rules hide, by their keys, each with its rule."""
        hidden: dict[object, Rule] = {}
        for path in kin:
            rule = self.rule_of_path(path)
            for key in _keys_in(self._runtime, path) if rule.is_private else ():
                hidden[key] = stricter(rule, hidden.get(key, _FREE))
        return hidden

    def paths_of(self, session_ids: Collection[str]) -> list[str]:
        session_id_of = self._runtime.session_id_of
        return (
            [path for path in self.siblings() if session_id_of(path) in session_ids]
            if session_ids
            else []
        )

    def rule_of_path(self, path: str) -> Rule:
        """Return the rule for the session of a transcript; a mirror shows if one has emptied it."""
        if path not in self._rule_by_path:
            described = self._described.get(path)
            try:
                described = described or describe(self._runtime, path, self._rules)
            except (OSError, ValueError):
                described = Described()
            names = (*self._names.get(path, ()), described.title, self._runtime.session_id_of(path))
            rule = self._rules.rule(described.start, *filter(None, names))
            self._rule_by_path[path] = _with_mirror(rule, path)
        return self._rule_by_path[path]

    def rule_of_id(self, session_id: str) -> Rule:
        """Return the rule for the session with this id, by its transcript if there is one."""
        if session_id not in self._rule_by_id:
            rule = self._rules.of_names(session_id)
            for path in self.siblings():
                if self._runtime.session_id_of(path) == session_id:
                    rule = stricter(rule, self.rule_of_path(path))
            self._rule_by_id[session_id] = rule
        return self._rule_by_id[session_id]

    def siblings(self) -> list[str]:
        """Return the paths of the transcripts beside this one."""
        if self._paths is None:
            self._paths = [session.path for session in _siblings(self._runtime, self._path)]
        return self._paths

    def holds(self, sibling: str, mark: bytes, limit: int) -> bool:
        """Return whether a transcript has `mark` in its first bytes: see `holds_bytes`.

        Raises OSError."""
        with Opened(sibling) as descriptor:
            return holds_bytes(descriptor, mark, limit)


def _with_mirror(rule: Rule, path: str) -> Rule:
    """Return a session's rule, which is stricter if a rule has emptied its mirror at `path`."""
    return stricter(rule, Rule(ignore=True)) if not rule.ignore and hidden_by(path) else rule


def for_title(text: str) -> str:
    """Return the beginning of a text as a title: on one line, for people."""
    return shortened(beginning(text, TITLE_CHARACTERS + SECRET_CHARACTERS), TITLE_CHARACTERS)


def _key_of(entry: Entry) -> object:
    """Return the value that an entry and its copies share."""
    return entry.id or (entry.role, entry.timestamp, entry.text)


def _own_prompt(runtime: Runtime, path: str, gate: Gate) -> str:
    """Return the most informative visible request at a transcript's beginning, or ''.

    Raises OSError."""
    with Opened(path) as descriptor:
        first, lines = head_lines(descriptor, FURTHER_BYTES)
        entries = [*TranscriptReader(runtime, first).forward(lines)]
    said = [
        entry
        for entry in entries
        if isinstance(entry, Entry) and entry.role == "user" and is_request(entry.text)
    ]
    return telling_request([entry.text for entry in said if not gate.rule_of(entry).is_private])


def _keys_in(runtime: Runtime, path: str) -> list[object]:
    """Return the keys of all entries of a transcript; none if it cannot be read."""
    try:
        with Opened(path) as descriptor:
            reader = TranscriptReader(runtime, first_line(descriptor))
            return [
                _key_of(entry) for entry in reader.conversation(descriptor) if entry is not None
            ]
    except OSError:
        return []


def _siblings(runtime: Runtime, path: str) -> list[Session]:
    """Return the sessions whose transcripts are in the same folder.

    If that is a folder for one day, return the sessions of all days."""
    folder = path.rpartition("/")[0]
    if runtime.HAS_PROJECT_FOLDERS:
        return runtime.sessions_in(folder)
    folders = [path.rsplit("/", runtime.DEEPEST)[0]]
    for _ in range(runtime.DEEPEST - 1):
        folders = [f"{folder}/{name}" for folder in folders for name in names_in(folder)]
    return [session for folder in folders for session in runtime.sessions_in(folder)]


def _reach(path: str, mark: bytes) -> int:
    """Return within how many first bytes similar transcripts must have this one's first entry id.

    Similar transcripts have the same beginning."""
    try:
        with Opened(path) as descriptor:
            for limit in (HEAD_BYTES, FURTHER_BYTES):
                at = read_at(descriptor, 0, limit).find(mark)
                if at >= 0:
                    return at + HEAD_BYTES
            return FURTHER_BYTES
    except OSError:
        return 0
