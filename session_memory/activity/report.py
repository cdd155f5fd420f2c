"""What one session did, as a value. Pure."""

from __future__ import annotations

from ..system.files import is_file
from ..text.format import one_line, shorten
from ..text.paths import relative, resolved
from ..transcripts.reader import FIRST_PROMPT_RANK, USER_RANK
from ..transcripts.titles import is_request, subject, title_by_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..settings.compiled import Settings
    from ..settings.homes import Home
    from ..settings.privacy import Privacy
    from ..settings.rules import Rule
    from ..transcripts.entries import Entry, Session
    from .changes import OwnSession
    from .unseen import Unseen

NAME_CHARACTERS = 24  # of a first prompt that has to name a session


class SessionSummary:
    """What a session's entries add up to.

    `first_request` is what the first prompt that asks for something is about, `last_assistant_text` whole ('' for
    none), `edited_files` the distinct paths in the order they came, relative to the first working directory where they
    lie below it, the times in seconds since the epoch (None where no entry has one).
    """

    __slots__ = (
        "commands", "edited_files", "files_read", "first_request", "first_timestamp", "last_assistant_text",
        "last_timestamp", "messages",
    )  # fmt: skip

    def __init__(self) -> None:
        self.first_request = ""
        self.last_assistant_text = ""
        self.edited_files: tuple[str, ...] = ()
        self.files_read = 0
        self.commands = 0
        self.messages = 0
        self.first_timestamp: float | None = None
        self.last_timestamp: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to say but that there were messages."""
        said = self.first_request or self.last_assistant_text
        return not (said or self.edited_files or self.files_read or self.commands)


def summarize(entries: Iterable[Entry]) -> SessionSummary | None:
    """The summary of `entries` in file order; None if there are none. An entry id counts once, an API message too."""
    summary = SessionSummary()
    ids: set[str] = set()
    messages: set[str] = set()
    edited: dict[str, None] = {}
    read: set[str] = set()
    directory = ""
    for entry in entries:
        if entry.id in ids:
            continue
        if entry.id:
            ids.add(entry.id)
        if not entry.message_id or entry.message_id not in messages:
            summary.messages += 1
            messages.add(entry.message_id)
        directory = directory or entry.cwd
        if entry.role == "user":
            if not summary.first_request and is_request(entry.text):
                summary.first_request = subject(entry.text)
        elif entry.text:
            summary.last_assistant_text = entry.text
        for tool in entry.tools:
            if tool.kind == "edit":
                edited[resolved(tool.argument, entry.cwd) or tool.argument] = None
            elif tool.kind == "read":
                read.add(resolved(tool.argument, entry.cwd) or tool.argument)
            elif tool.kind == "command":
                summary.commands += 1
        if entry.timestamp is not None:
            if summary.first_timestamp is None:
                summary.first_timestamp = entry.timestamp
            summary.last_timestamp = max(entry.timestamp, summary.last_timestamp or entry.timestamp)
    summary.edited_files = tuple([relative(path, directory) for path in edited])
    summary.files_read = len(read)
    return summary if summary.messages else None


class Report:
    """One session to be told of: its name and the place that it is named with, the runtime that it runs in ('' where
    that is the one of the session at hand), its summary, whether its text may be shown, and when it was last active.
    `title` is the beginning of the request that it is named by, '' if it has a name or a title. What it did up to
    `since`, in seconds since the epoch, was forgotten.

    `entries` are those of which may be told that something was done, whose commands may be shown if it `may_quote`."""

    __slots__ = (
        "entries", "is_partial", "last_active", "may_quote", "name", "place", "runtime", "since", "summary",
        "title", "with_text",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        summary: SessionSummary,
        *,
        last_active: float,
        place: tuple[str, str] = ("", ""),
        title: str = "",
        with_text: bool = True,
        is_partial: bool = False,
        entries: Sequence[Entry] = (),
        may_quote: bool = False,
        runtime: str = "",
        since: float = 0.0,
    ) -> None:
        self.name = name
        self.since = since
        self.runtime = runtime
        self.entries = entries
        self.may_quote = may_quote
        self.place = place
        self.title = title
        self.summary = summary
        self.last_active = last_active
        self.with_text = with_text
        self.is_partial = is_partial

    @property
    def called(self) -> str:
        """Its name, with the runtime where that is another one."""
        return f"{self.runtime}: {self.name}" if self.runtime else self.name

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to say of the session, though all might be said."""
        return self.may_quote and self.summary.is_empty


class OwnRules:
    """The rules of the home that is told, and what was forgotten there, if no rule is for a directory and no other
    home's count."""

    def __init__(self, settings: Settings, home: Home | None) -> None:
        self._settings = settings
        self._forgotten = [one for one in home.forgotten_files() if is_file(one[0])] if home else []

    @property
    def are_open(self) -> bool:
        """Return whether all may be told."""
        return not (self._forgotten or self._settings.has_rules)

    def forgotten_until(self, session_id: str, start_directory: str) -> int | None:
        """See `Privacy.forgotten_until`."""
        if not self._forgotten:
            return None
        from ..settings.forgotten import forgotten_until, read_file

        times = [
            forgotten_until(read_file(path), group, session_id, start_directory) for path, group in self._forgotten
        ]
        return max([time for time in times if time is not None], default=None)

    def of_directory(self, directory: str, start_directory: str = "") -> Rule:
        """Return the rule for none."""
        from ..settings.rules import Rule

        return Rule()

    def has_rules(self, start_directory: str = "") -> bool:
        """See `Privacy.has_rules`."""
        return self._settings.has_rules

    def rule(self, start_directory: str, *names: str) -> Rule:
        """See `Privacy.rule`."""
        return self._settings.rule(*names)

    def has_name_rules(self, start_directory: str = "") -> bool:
        """See `Privacy.has_name_rules`."""
        return self._settings.has_name_rules


def may_hide(settings: Settings, home: Home | None) -> bool:
    """Return whether rules of the home, or what was forgotten there, may hide anything."""
    return settings.has_rules or not OwnRules(settings, home).are_open


def rules_for(settings: Settings, home: Home | None, starts: Iterable[str]) -> OwnRules | Privacy:
    """The rules that count for sessions that were started in the directories `starts`, where `settings` are those of
    `home`. Only with rules for directories, or another agent home among them, all have to be looked at."""
    from ..settings.homes import environment, settings_above

    if home is None or not (settings.has_project_rules or any(settings_above(start, home) for start in {*starts})):
        return OwnRules(settings, home)
    from ..settings.privacy import Privacy

    return Privacy(environment(), home)


def reports_of(
    read: list[Unseen], own: OwnSession, settings: Settings, now: float
) -> list[tuple[Report | None, Unseen]]:  # fmt: skip
    """Return what each of the sessions `read` did, as `report_of` says it, without those of which it cannot be said."""
    rules = rules_for(settings, own.home, [unseen.cursor.get("start", "") for unseen in read])

    def report(unseen: Unseen) -> tuple[Report | None, Unseen]:
        return report_of(unseen, rules, own.id_of(unseen.session), now), unseen

    found = [own.deadline.attempt(unseen.session.path, report, unseen) for unseen in read]
    return [one for one in found if one is not None]


def report_of(unseen: Unseen, rules: OwnRules | Privacy, session_id: str, now: float) -> Report | None:
    """Return what the session did; None if it did nothing, or if nothing may be told of it."""
    session = unseen.session
    entries = done = unseen.entries
    rank, title = unseen.title
    until = None
    may_show = may_quote = True
    if not isinstance(rules, OwnRules) or not rules.are_open:
        from .judged import judge

        gate = judge(unseen, rules, session_id)
        entries, done, until, may_show = gate.told(entries), gate.done(entries), gate.until, gate.rule.quote
        rank, title = unseen.title
        may_quote = may_show and entries == done
    summary = summarize(entries)
    if summary is None:
        return None
    name, request = session.name, ""
    if not name and rank > FIRST_PROMPT_RANK and (may_show or rank >= USER_RANK):
        name = title
    elif not name and may_show:
        request = one_line(title)
        name = shorten(request, NAME_CHARACTERS)
    return Report(
        name or title_by_time(unseen.cursor.get("began") or summary.first_timestamp),
        summary,
        place=_place(session, entries[-1].cwd) if may_show else ("", ""),
        title=request,
        last_active=summary.last_timestamp or now,
        with_text=may_show,
        is_partial=unseen.is_partial,
        entries=done,
        may_quote=may_quote,
        since=(until or 0) / 1000,
        runtime=session.runtime.name if session.runtime else "",
    )


def _place(session: Session, cwd: str) -> tuple[str, str]:
    """Where the session works, where that is not the place of the one that is told: the words before it, and its name
    as it is. It is cut where secrets are out of it."""
    directory = cwd.replace("\\", "/").rstrip("/").rpartition("/")[2] if session.is_elsewhere else ""
    if directory:
        return " in ", directory
    return (", in worktree ", session.worktree) if session.worktree else ("", "")
