"""Reports: one session's activity as a value, as far as the rules permit."""

from __future__ import annotations

from ..system.files import Opened, is_file, os
from ..text.format import one_line, shorten
from ..text.paths import relative, resolved
from ..text.sanitize import for_people
from ..transcripts.lines import first_line
from ..transcripts.reader import FIRST_PROMPT_RANK, USER_RANK, TitleOwner, TranscriptHead, TranscriptReader
from ..transcripts.titles import is_request, subject, title_by_time
from .new_entries import kept_title, read_other_titles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..runtimes import Runtime
    from ..settings.compiled import Settings
    from ..settings.homes import Home
    from ..settings.privacy import Privacy
    from ..settings.rules import Rule
    from ..transcripts.cursor import Cursor
    from ..transcripts.entries import Entry, Session
    from ..transcripts.gate import Gate
    from .changes import OwnSession
    from .new_entries import NewEntries

NAME_CHARACTERS = 24  # of a first prompt that has to name a session
MOST_HEADS = 30  # read to count unread sessions
MOST_SEARCHED_BYTES = 1024 * 1024  # of a transcript in which a name is searched


class SessionSummary:
    """Summary of a session's entries.

    `first_request` is the subject of the first prompt that asks for something, `last_assistant_text` is whole ('' for
    none), `edited_files` are the distinct paths in their order, relative to the first working directory if below it,
    the times are in seconds since the epoch (None if no entry has one).
    """

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
    def first_user_text(self) -> str:
        """The name of `first_request` in programs that import `session_monitor`."""
        return self.first_request

    @property
    def is_empty(self) -> bool:
        """Check if there is nothing to report but the number of messages."""
        said = self.first_request or self.last_assistant_text
        return not (said or self.edited_files or self.files_read or self.commands)


def summarize(entries: Iterable[Entry]) -> SessionSummary | None:
    """Return the summary of `entries` in file order; None if there are none. An entry id counts once, an API message
    too."""
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
    """Report of one session: its name, the `place` named with it, its summary, and when it was last active. `title` is
    the beginning of the request that it is named by, '' if it has a name or a title. `with_text` says that its text may
    be shown, `may_quote` also its commands.

    `entries` are those that may be reported, `gate` decides that of what its sub-agents did, None for all. `runtime`
    is '' if it is this session's. What it did up to `since`, in seconds since the epoch, was forgotten."""

    def __init__(
        self, name: str, summary: SessionSummary, *, last_active: float, place: tuple[str, str] = ("", ""),
        title: str = "", with_text: bool = True, is_partial: bool = False,
    ) -> None:  # fmt: skip
        self.name = name
        self.summary = summary
        self.last_active = last_active
        self.place = place
        self.title = title
        self.with_text = with_text
        self.is_partial = is_partial
        self.entries: Sequence[Entry] = ()
        self.gate: Gate | None = None
        self.may_quote = False
        self.runtime = ""
        self.since = 0.0

    @property
    def called(self) -> str:
        """Its name, with the runtime if that is another one."""
        return f"{self.runtime}: {self.name}" if self.runtime else self.name

    @property
    def is_empty(self) -> bool:
        """Check if there is nothing to report, although all may be reported."""
        return self.may_quote and self.summary.is_empty


class OwnRules:
    """The rules of this home, and what was forgotten there: enough if none is for a directory and no other home's
    rules count."""

    def __init__(self, settings: Settings, home: Home | None) -> None:
        self._settings = settings
        self._forgotten = [one for one in home.forgotten_files() if is_file(one[0])] if home else []

    @property
    def are_open(self) -> bool:
        """Check that nothing is hidden."""
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
    """Check if rules of the home, or what was forgotten there, may hide anything."""
    return settings.has_rules or not OwnRules(settings, home).are_open


def rules_for(settings: Settings, home: Home | None, starts: Iterable[str]) -> OwnRules | Privacy:
    """Return the rules for sessions that were started in the directories `starts`; `settings` are those of `home`. All
    homes are checked only if there are rules for directories, or another agent home among them."""
    from ..settings.homes import environment, settings_above

    if home is None or not (settings.has_project_rules or any(settings_above(start, home) for start in {*starts})):
        return OwnRules(settings, home)
    from ..settings.privacy import Privacy

    return Privacy(environment(), home)


def reports_of(
    read: list[NewEntries], own: OwnSession, settings: Settings, now: float
) -> list[tuple[Report | None, NewEntries]]:  # fmt: skip
    """Return the report of each session, None if there is nothing to report, without those for which that fails."""
    rules = rules_for(settings, own.home, [new.cursor.get("start", "") for new in read])

    def report(new: NewEntries) -> tuple[Report | None, NewEntries]:
        return report_of(new, rules, own.id_of(new.session), now), new

    found = [own.deadline.attempt(new.session.path, report, new) for new in read]
    return [one for one in found if one is not None]


def report_of(new: NewEntries, rules: OwnRules | Privacy, session_id: str, now: float) -> Report | None:
    """Return the report of a session; None if neither it nor a sub-agent did anything, or if all of it is hidden."""
    session = new.session
    entries = done = new.entries
    rank, title = new.title
    until = None
    may_show = may_quote = True
    gate = None
    if not isinstance(rules, OwnRules) or not rules.are_open:
        gate = _gate(new, rules, session_id)
        entries, done, until, may_show = gate.told(entries), gate.done(entries), gate.until, gate.rule.quote
        rank, title = new.title
        may_quote = may_show and entries == done
    summary = summarize(entries)
    if summary is None and session.sub_agent_bytes and not (gate and gate.rule.ignore):
        summary = SessionSummary()
    if summary is None:
        return None
    name, request = session.name, ""
    if not name and rank > FIRST_PROMPT_RANK and (may_show or rank >= USER_RANK):
        name = title
    elif not name and may_show:
        request = one_line(title)
        name = shorten(request, NAME_CHARACTERS)
    report = Report(
        name or title_by_time(new.cursor.get("began") or summary.first_timestamp),
        summary,
        last_active=summary.last_timestamp or now,
        place=_place(session, entries[-1].cwd if entries else new.cursor["start"]) if may_show else ("", ""),
        title=request,
        with_text=may_show,
        is_partial=new.is_partial,
    )
    report.entries, report.may_quote, report.gate = done, may_quote, gate
    report.since = (until or 0) / 1000
    report.runtime = session.runtime.name if session.runtime else ""
    return report


def _place(session: Session, cwd: str) -> tuple[str, str]:
    """Return the session's place if it is not this session's: the words before it, and its unredacted name."""
    directory = cwd.replace("\\", "/").rstrip("/").rpartition("/")[2] if session.is_elsewhere else ""
    if directory:
        return " in ", directory
    return (", in worktree ", session.worktree) if session.worktree else ("", "")


def _gate(new: NewEntries, rules: OwnRules | Privacy, session_id: str) -> Gate:
    """Return the gate of a session that was read, and make its title one that may be shown. Its beginning is noted in
    its cursor. Raises OSError."""
    from ..transcripts.gate import Family, Gate

    session, cursor = new.session, new.cursor
    start = cursor.get("start", "")
    if rules.has_name_rules(start):
        read_other_titles(new)
    names = (session.name or session.key, new.title[1])
    if session.team_root or not rules.has_rules(start):
        gate = Gate(rules, session_id, start, names)
    else:
        family = Family(rules, new.runtime, session.path)
        if "kin" not in cursor:
            kin = family.kin(session.path, cursor.get("first", ""), bool(cursor.get("compacted")))
            cursor["kin"] = [new.runtime.session_id_of(path) for path in kin]
        gate = Gate(rules, session_id, start, names, family, family.copied(family.paths_of(cursor["kin"])))
    may_show_hidden = gate.hides_some and new.title[0] < USER_RANK  # the title may be made of hidden entries
    new.title = gate.title(new.title, _visible_request(new, gate) if may_show_hidden else "")
    return gate


def _visible_request(new: NewEntries, gate: Gate) -> str:
    """Return the subject of the first request that is not hidden, '' for none. It stays the same from then on."""
    if not new.cursor.get("own_title"):
        requests = [one.text for one in gate.told(new.entries) if one.role == "user" and is_request(one.text)]
        new.cursor["own_title"] = kept_title((FIRST_PROMPT_RANK, subject(requests[0]) if requests else ""))[1]
    return str(new.cursor["own_title"])


def count_visible(unread: Sequence[Session], cursors: Mapping[str, Cursor], settings: Settings, own: OwnSession) -> int:
    """Return how many of the changed sessions beyond those in the update are not hidden. If that is unknown, a session
    is not counted."""
    is_hidden = may_hide(settings, own.home)
    judged = [session for session in unread if is_hidden or session.is_elsewhere]
    found = []
    heads_left, by_name = MOST_HEADS, settings.has_name_rules
    for session in judged:
        cursor = cursors.get(session.key, {})
        if "start" in cursor and ("titled" in cursor or not by_name):
            found.append((session, cursor["start"], cursor.get("title", (0, ""))[1]))
        elif heads_left:
            heads_left -= 1
            found += own.deadline.attempt(session.path, _from_head, session, own.runtime_of(session), by_name) or []
    rules = rules_for(settings, own.home, [start for _, start, _ in found])
    names = [(start, session.name or session.key, title, own.id_of(session)) for session, start, title in found]
    visible = [one for one in names if not rules.rule(*one).ignore and rules.forgotten_until(one[-1], one[0]) is None]
    return len(unread) - len(judged) + len(visible)


def _from_head(session: Session, runtime: Runtime, by_name: bool) -> list[tuple[Session, str, str]]:
    """Return the session with its directory and title from the beginning of its transcript, and from all of it if a
    rule may name it; [] if that is too long to search. Raises OSError."""
    with Opened(session.path) as descriptor:
        size = os.fstat(descriptor).st_size
        if by_name and size > MOST_SEARCHED_BYTES:
            return []
        owner = TitleOwner(runtime.session_id_of(session.path), descriptor)
        reader = TranscriptReader(runtime, first_line(descriptor), owner=owner)
        if by_name:
            reader.take_titles(descriptor, 0, size)
        head = TranscriptHead(runtime, descriptor, owner)
        return [(session, for_people(head.cwd), head.best_title(max(reader.title, (FIRST_PROMPT_RANK, "")))[1])]
