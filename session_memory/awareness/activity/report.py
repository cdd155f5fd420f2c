"""Reports: one session's activity as a value, as far as the rules permit."""

from __future__ import annotations

from ...common.system.files import Opened, os
from ...common.text.format import counted, shorten, shorten_both, shortened_id
from ...common.text.paths import relative, resolved
from ...common.text.sanitize import for_people
from ...sessions.transcripts.entries import FROM_AGENTS, NOTHING, Entry, Session, ToolUse
from ...sessions.transcripts.lines import first_line
from ...sessions.transcripts.projects import is_of_namesake
from ...sessions.transcripts.reader import (
    BRIEF_OWNER_BYTES,
    FIRST_PROMPT_RANK,
    HEAD_BYTES,
    USER_RANK,
    TitleOwner,
    TranscriptHead,
    TranscriptReader,
    is_request,
    later_request,
    says_enough,
    telling_request,
    title_of,
)
from ._new_entries import NewEntries, kept_title, read_other_titles
from .viewpoint import Viewpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...sessions.runtimes.base import Runtime
    from ...sessions.settings.compiled import Settings
    from ...sessions.settings.homes import Home
    from ...sessions.settings.privacy import Privacy
    from ...sessions.transcripts.gate import Gate
    from ...sessions.transcripts.read_cursor import ReadCursor, ReadCursors
    from .changes import OwnSession

# tools that are not reported
SEARCHES = ("glob", "grep", "list_directory", "ls", "toolsearch", "tool_search")
_LISTS = (
    *(
        "todowrite",
        "todo_write",
        "write_todos",
        "update_plan",
        "taskcreate",
        "taskupdate",
        "tasklist",
        "taskget",
    ),
    *("enterplanmode", "exitplanmode", "askuserquestion", "ask_user"),
    # how it works, not what it does
    *("bashoutput", "killshell", "sendmessage", "skill", "taskoutput", "taskstop"),
)  # the agent's own notes: no work either
_SPILLED = "/tool-results/"  # in which Claude Code puts results that are too long
ONE_SHOT_MESSAGES = 4  # of a session with one prompt and nothing done
SAME_SECONDS = 3600  # within which prompts are compared
NAME_CHARACTERS = 40
PLACE_CHARACTERS = 24
FILLER_CHARACTERS = 200  # a longer text is not filler
MOST_HEADS = 30  # read to count unread sessions
# the most unread sessions to count; beyond that the update says only that there are more
MOST_COUNTED = 10
MOST_SEARCHED_BYTES = 1024 * 1024  # of a transcript in which a name is searched

# prompts that try if an agent answers
_PROBES = ("echo hello", "echo hi", "ping", "test", "testing")

_UNNAMED = "session "  # before the id of a session without a name

_PLANS = "/.claude/plans/"  # of Claude Code's plan mode

_EXCLAIMED = frozenset(
    ("alright", "awesome", "excellent", "good", "great", "nice", "ok", "okay", "perfect", "right")
)
_ANNOUNCED = (
    "first, i",
    "first, let",
    "i am going to",
    "i need to",
    "i will",
    "i'll",
    "i'm going to",
    "let me",
    "let's",
    "next, i",
    "next, let",
    "now i",
    "now let",
    "now, let",
)
_RULES = tuple([5 * mark for mark in "─━═-=*~_"])  # drawn with characters


class SessionSummary:
    """Summary of a session's entries.

    `first_request` is the first prompt that says enough, else the most informative one;
    `last_request` likewise the last one, and `edit_request` the last one before the last edit, if
    files were edited ('' if none was). `last_assistant_text` is complete ('' if there is none); it
    `is_earlier` if a request came after it.
    `edited_files` are the distinct paths in their order, relative to the first working directory if
    below it; so is `last_read`. `ran` are the command calls, `other_tools` the names of further
    tools. `from_agents` counts the messages of other agents. The times are in seconds since 1970
    (None if no entry has one). `calls` are edits, reads and commands, with their entries and paths;
    `touched` the files that they edited or read, as path, kind and time; `by_sub_agents` the paths
    of files that sub-agents edited. `last` is the last entry."""

    def __init__(self) -> None:
        self.first_request = self.last_request = self.edit_request = ""
        self.last_assistant_text = ""
        self.is_earlier = False
        self.edited_files: tuple[str, ...] = ()
        self.files_read = 0
        self.last_read = ""
        self.ran: list[ToolUse] = []
        self.calls: list[tuple[Entry, ToolUse, str]] = []
        self.touched: list[tuple[str, str, float | None]] = []
        self.by_sub_agents: list[str] = []
        self.directory = self.inside = ""
        self._viewpoint: Viewpoint | None = None  # until a file has to be named
        self._local_root = ""
        self.last: Entry | None = None
        self.other_tools: tuple[str, ...] = ()
        self.from_agents = 0
        self.messages = 0
        self.first_timestamp: float | None = None
        self.last_timestamp: float | None = None

    def take_requests(self, requests: list[str], before_edit: int) -> None:
        """Note the first and last request that describe the session, and the last of the first
        `before_edit` ones, which led to its last edit."""
        first = last = telling_request(requests)
        if len(requests) > 1:
            last = telling_request(reversed(requests))
        self.first_request, self.last_request = title_of(first), title_of(last)
        self.edit_request = self.last_request
        if before_edit < len(requests):
            self.edit_request = title_of(telling_request(reversed(requests[:before_edit])))

    def take_calls(self, entry: Entry, others: dict[str, None]) -> bool:
        """Note the calls of an entry, and the names of further tools in `others`; return whether
        it edited a file."""
        has_edit = False
        for tool in entry.tools:
            if tool.kind in ("edit", "read"):
                path = resolved(tool.argument, entry.cwd) or tool.argument
                self.calls.append((entry, tool, path))
                has_edit = has_edit or tool.kind == "edit"
            elif tool.kind == "command":
                self.calls.append((entry, tool, ""))
            elif tool.name.lower() not in (*SEARCHES, *_LISTS):
                others[tool.name] = None
        return has_edit

    def see_from(self, viewpoint: Viewpoint, local_root: str = "") -> None:
        """Name the files as the reader at a `viewpoint` does.

        A session on another machine names them relative to its copy of the repository that is at
        `local_root` here."""
        self._viewpoint, self._local_root = viewpoint, local_root
        before = self.directory
        if self.touched:
            self._find_place()
            if self.inside or self.directory != before:
                self.count_calls()

    def _find_place(self) -> None:
        if self._viewpoint is not None:
            root, self.inside = self._viewpoint.of(self._local_root or self.directory)
            self.directory = "" if self._local_root else root
            self._viewpoint = None

    def shown(self, path: str) -> str:
        """Return the path of a file as the summary names it."""
        if self._local_root and not path.startswith("/"):
            return relative(f"/{path}", "/", self.inside)
        return relative(path, self.directory, self.inside)

    def count_calls(self) -> None:
        """Count the calls, except those that are known to have done nothing."""
        self.touched, self.ran = [], []
        for entry, tool, path in self.calls:
            if tool.outcome == NOTHING:
                continue
            written = [path] if tool.kind == "edit" else []
            if tool.kind == "command":
                from ...sessions.transcripts.edits import edited_files

                written = edited_files(tool.kind, tool.argument, entry.cwd, tool.outcome)
                if not (written and _only_writes(tool.argument)):
                    self.ran.append(tool)
            elif tool.kind == "read" and _SPILLED not in path:
                self.touched.append((path, "read", entry.timestamp))
            self.touched += [(path, "edit", entry.timestamp) for path in written]
        read = dict.fromkeys([path for path, kind, _ in self.touched if kind == "read"])
        edited = dict.fromkeys(
            [path for path, kind, _ in self.touched if kind == "edit"] + self.by_sub_agents
        )
        if edited or read:
            self._find_place()
        self.edited_files = tuple([self.shown(path) for path in edited])
        self.files_read = len(read)
        self.last_read = self.shown(next(reversed(read))) if read else ""

    @property
    def first_user_text(self) -> str:
        """The name of `first_request` for programs that import `session_monitor`."""
        return self.first_request

    @property
    def commands(self) -> int:
        """The number of commands."""
        return len(self.ran)

    @property
    def has_actions(self) -> bool:
        """Check if the session did anything besides talking."""
        return bool(
            self.edited_files or self.files_read or self.ran or self.other_tools or self.from_agents
        )


def summarize(entries: Iterable[Entry]) -> SessionSummary | None:
    """Return the summary of `entries` in file order, or None without any.

    Each id counts once."""
    summary = SessionSummary()
    ids: set[str] = set()
    messages: set[str] = set()
    others: dict[str, None] = {}
    requests: list[str] = []
    before_edit: int | None = None
    before_text = 0
    directory = ""
    for entry in entries:
        if entry.id in ids:
            continue
        if entry.id:
            ids.add(entry.id)
        summary.last = entry
        if not entry.message_id or entry.message_id not in messages:
            summary.messages += 1
            messages.add(entry.message_id)
        directory = directory or entry.cwd
        if entry.role == "user":
            summary.from_agents += entry.text.startswith(FROM_AGENTS)
            if is_request(entry.text):
                requests.append(entry.text)
        elif entry.text:
            summary.last_assistant_text, before_text = entry.text, len(requests)
        if entry.tools and summary.take_calls(entry, others):
            before_edit = len(requests)
        if entry.timestamp is not None:
            if summary.first_timestamp is None:
                summary.first_timestamp = entry.timestamp
            summary.last_timestamp = max(entry.timestamp, summary.last_timestamp or entry.timestamp)
    summary.directory = directory
    summary.count_calls()
    summary.other_tools = tuple(others)
    summary.is_earlier = before_text < len(requests)
    summary.take_requests(requests, len(requests) if before_edit is None else before_edit)
    return summary if summary.messages else None


def _only_writes(command: str) -> bool:
    from ...common.text.shell_commands import only_writes

    return only_writes(command)


class Report:
    """Report of one session.

    It has the session's `name` in an agent home, or its `title`, either '' if missing, the
    `short_id` that names it without both. If the title is its first request, it `goes_on` with the
    last one. It has the `place` named with it, its summary, and when it was last active.
    `is_request` means that the title is a request, perhaps shortened. `with_text` means that its
    text may be shown, `may_quote` also its commands.

    `entries` are the ones that may be reported; `gate` decides about its sub-agents' activity, None
    for all. `ran` names its commands, None if that was not tried. `preferred` are the edited files that
    matter most to the reader. `runtime` is '' if it is this session's. Activity up to `since`, in
    seconds since 1970, was forgotten."""

    def __init__(
        self,
        name: str,
        summary: SessionSummary,
        *,
        last_active: float,
        place: tuple[str, str] = ("", ""),
        title: str = "",
        is_request: bool = False,
        with_text: bool = True,
        is_partial: bool = False,
    ) -> None:
        self.name = name
        self.title = title
        self.is_request = is_request
        self.summary = summary
        self.last_active = last_active
        self.place = place
        self.with_text = with_text
        self.is_partial = is_partial
        self.entries: Sequence[Entry] = ()
        self.gate: Gate | None = None
        self.ran: list[str] | None = None
        self.may_quote = False
        self.runtime = ""
        self.since = 0.0
        self.preferred: list[str] = []
        self.short_id = self.goes_on = ""
        self._answer: str | None = None

    @property
    def texts(self) -> list[str]:
        """Return the texts that name the session, to be sanitized for `label_of`."""
        name = self.name
        if not (name or self.title) and self.short_id:
            name = f"{_UNNAMED}{self.short_id}"
        return [name, self.title, self.goes_on, self.place[1]]

    @property
    def is_empty(self) -> bool:
        """Check if nothing is left to report, although nothing was withheld."""
        said = self.summary.first_request or self.answer
        return self.may_quote and not (said or self.summary.has_actions)

    @property
    def says_something(self) -> bool:
        """Check if it can be a line of an update."""
        return bool(self.summary.messages) and not self.is_empty and not self.is_nameless

    @property
    def named_files(self) -> tuple[str, int, list[str]]:
        """Return a verb, the number of files, and the files that represent them, the best first.

        The files are the edited ones, else the read ones. Preferred ones come first, then the one
        edited most often, then the last ones, those in the session's directory first; a plan is
        never one. There is none if none may be named."""
        summary = self.summary
        edited = [path for path in summary.edited_files if _PLANS not in path]
        if not edited:
            return "read", summary.files_read, [summary.last_read] if summary.last_read else []
        times: dict[str, int] = {}
        for path, kind, _ in reversed(summary.touched):
            if kind == "edit":
                path = summary.shown(path)
                times[path] = times.get(path, 0) + 1
        last = [path for path in [*times, *reversed(edited)] if path in edited]
        inside = [path for path in last if not path.startswith("/")] or last[:1]
        most = max(inside, key=lambda path: times.get(path, 0))
        preferred = [path for path in self.preferred if path in edited]
        return "edited", len(edited), [*dict.fromkeys([*preferred, most, *inside])]

    def counted(self, number: int, noun: str) -> str:
        """Return `3 files`, or `3+ files` if only a part was read."""
        return f"{number}+ {noun}s" if self.is_partial else counted(number, noun)

    def prompted_at(self, prompt: str) -> float | None:
        """Return when the session last got a prompt with the same words, or None.

        The time is in seconds since 1970."""
        words = prompt.split()
        times = [
            entry.timestamp or 0.0
            for entry in self.entries
            if entry.role == "user" and entry.text.split() == words
        ]
        return max(times, default=None)

    @property
    def is_probe(self) -> bool:
        """Check if it is a single prompt that tries if an agent answers."""
        return self.is_one_shot and self.summary.first_request.casefold().strip(" .!?") in _PROBES

    @property
    def is_one_shot(self) -> bool:
        """Check if it is a single prompt that led to no work."""
        summary = self.summary
        prompts = sum([bool(entry.role == "user" and entry.text) for entry in self.entries])
        if self.name or self.is_partial or prompts != 1 or summary.messages > ONE_SHOT_MESSAGES:
            return False
        return self.with_text and not (summary.edited_files or summary.from_agents)

    @property
    def named_commands(self) -> list[str]:
        """Return the names in `ran`, without the counts."""
        return [
            name for name in self.ran or () if not (name[0].isdigit() and name.endswith(" more"))
        ]

    @property
    def is_concrete(self) -> bool:
        """Check if something that it did can be named: a file, a command, an answer."""
        return self.with_text and bool(
            self.summary.edited_files
            or self.summary.last_read
            or self.named_commands
            or self.answer
        )

    @property
    def answer(self) -> str:
        """The last answer without leading rules and boxes; '' if it says nothing."""
        if self._answer is None:
            self._answer = _telling_answer(self.summary.last_assistant_text)
        return self._answer

    @property
    def is_nameless(self) -> bool:
        """Check if nothing can be said about the session except that it exists."""
        said = self.name or self.title or (self.with_text and self.summary.first_request)
        return not (said or (self.with_text and self.summary.has_actions))


def _telling_answer(text: str) -> str:
    """Return an answer without leading rules and boxes; '' if it says nothing."""
    text = text.lstrip()
    while text:
        line, _, more = text.partition("\n")
        says = not line.isascii() or any([character.isalnum() for character in line])
        if says and not any([rule in line for rule in _RULES]):
            break
        text = more.lstrip()
    return text if _says_something(text) else ""


def _says_something(text: str) -> bool:
    """Check if an agent's text says something.

    Texts such as "Perfect!", "Now let me run the tests." or "The tests:" do not."""
    folded = text.strip().casefold().replace("’", "'")
    if len(folded) > FILLER_CHARACTERS:
        return True
    end = next((at for at, character in enumerate(folded) if character in "!.,"), len(folded))
    if folded[:end] in _EXCLAIMED:
        folded = folded[end:].lstrip("!., \n")
    return bool(folded) and not folded.endswith(":") and not folded.startswith(_ANNOUNCED)


def label_of(texts: Sequence[str], before_place: str, characters: int = NAME_CHARACTERS) -> str:
    """Return a session's label in an update, from the sanitized `texts` of its report.

    It is the name, else the title in at most `characters`, with the request by which the session
    goes on. The title is in quotation marks, so it does not read as an order."""
    name, title, goes_on, place = texts
    called = shorten(name, NAME_CHARACTERS)
    plain = called.removeprefix(_UNNAMED)
    if not all([character.isalnum() or character in "-._@…" for character in plain]):
        called = f'"{called}"'
    if not name:
        called = f'"{shorten_both(title, goes_on, characters)}"' if title else "a session"
    return called + (before_place + shorten(place, PLACE_CHARACTERS) if place else "")


def is_same_prompt(prompt: str, report: Report, now: float) -> bool:
    """Check if a session got the same prompt within SAME_SECONDS.

    Spaces do not matter. A prompt that says little, such as "go on", does not count."""
    at = report.prompted_at(prompt) if says_enough(prompt) else None
    return at is not None and now - at <= SAME_SECONDS


def may_hide(settings: Settings, home: Home | None) -> bool:
    """Check if the home's rules or forgotten sessions may hide anything."""
    return settings.has_rules or (home is not None and home.has_forgotten())


def _rules_for(settings: Settings, home: Home | None, starts: Iterable[str]) -> Privacy | None:
    """Return the rules for sessions started in `starts`; None if they can hide nothing.

    `settings` belong to `home`. Other homes are checked only if there are any."""
    from ...sessions.settings.homes import environment, settings_above

    if not may_hide(settings, home) and not (
        home and any([settings_above(start, home) for start in {*starts}])
    ):
        return None
    from ...sessions.settings.privacy import Privacy

    return Privacy(environment(), *([home] if home else []))


def reports_of(
    read: list[NewEntries], own_session: OwnSession, settings: Settings, now: float
) -> list[tuple[Report | None, NewEntries]]:
    """Return the report of each session, None if it has nothing to report.

    Sessions for which this fails are left out."""
    rules = _rules_for(settings, own_session.home, [new.cursor.start or "" for new in read])

    viewpoint = Viewpoint(own_session.start, own_session.user_dir)

    def report(new: NewEntries) -> tuple[Report | None, NewEntries]:
        if is_elsewhere(new.session, new.cursor, own_session):
            return None, new
        made = _report_of(new, rules, own_session.id_of(new.session), now)
        if made is not None:
            made.summary.see_from(viewpoint, new.session.local_root)
        return made, new

    reports = [own_session.deadline.attempt(new.session.path, report, new) for new in read]
    return [pair for pair in reports if pair is not None]


def is_elsewhere(session: Session, cursor: ReadCursor | None, reader: OwnSession) -> bool:
    """Check by its cursor if a session in the reader's project folder has another project."""
    start = (cursor.start if cursor else None) or ""
    if session.is_elsewhere or session.name or start == reader.directory:
        return False
    return is_of_namesake(
        reader.runtime_of(session), session.path, start, reader.directory, reader.user_dir
    )


def _report_of(
    new: NewEntries, rules: Privacy | None, session_id: str, now: float
) -> Report | None:
    """Return the report of a session; None if it has no activity or is completely hidden.

    Activity of sub-agents counts."""
    session = new.session
    entries = done = new.entries
    rank, title = new.title
    until = None
    may_show = may_quote = True
    gate = None
    if rules is not None:
        gate = _gate(new, rules, session_id)
        entries, done, until, may_show = (
            gate.told(entries),
            gate.done(entries),
            gate.until,
            gate.rule.quote,
        )
        rank, title = new.title
        may_quote = may_show and entries == done
    summary = summarize(entries)
    if summary is None and session.sub_agent_bytes and not (gate and gate.rule.ignore):
        summary = SessionSummary()
    if summary is None:
        return None
    report = Report(
        session.name,
        summary,
        last_active=summary.last_timestamp or now,
        place=_place(session, entries[-1].cwd if entries else new.cursor.start or "")
        if may_show
        else ("", ""),
        title=title if not session.name and (may_show or rank >= USER_RANK) else "",
        is_request=rank <= FIRST_PROMPT_RANK,
        with_text=may_show,
        is_partial=new.is_partial,
    )
    report.entries, report.may_quote, report.gate = done, may_quote, gate
    report.since = (until or 0) / 1000
    report.runtime = session.runtime.TITLE if session.runtime else ""
    if may_show:
        report.short_id, report.goes_on = shortened_id(session_id), _later_request(report)
    return report


def _later_request(report: Report) -> str:
    """Return the last request of a session that is named after its first one; '' if it says little
    or is the first one."""
    request = report.summary.last_request
    if not (report.title and report.is_request):
        return ""
    if "[redacted" in report.title:  # the title is without secrets
        _, shown = kept_title((FIRST_PROMPT_RANK, request))
        return request if later_request(report.title, [shown]) else ""
    return later_request(report.title, [request])


def _place(session: Session, cwd: str) -> tuple[str, str]:
    """Return the session's place, with a preposition, if it is another place than this session's.

    The place's name is unredacted."""
    directory = (
        cwd.replace("\\", "/").rstrip("/").rpartition("/")[2] if session.is_elsewhere else ""
    )
    if directory:
        return " in ", directory
    return (", in worktree ", session.worktree) if session.worktree else ("", "")


def _gate(new: NewEntries, rules: Privacy, session_id: str) -> Gate:
    """Return the gate of a session that was read, and make sure that its title may be shown.

    The cursor gets notes on the transcript's beginning, but no title of an excluded session. Raises
    OSError."""
    from ...sessions.transcripts.gate import Gate

    new.find_directories()
    session, start = new.session, new.cursor.start or ""
    gate = Gate(rules, session_id, start, (session.name or session.key,))
    if not gate.rule.ignore:
        gate = _gate_by_title(new, rules, session_id)
    if gate.rule.ignore or (gate.hides_forgotten and not gate.done(new.entries)):
        new.cursor.drop_titles()
    # The title may quote hidden entries, or may come from a forgotten session.
    gate.told(new.entries)
    gate.had_hidden_part = new.cursor.own_title is not None and rules.has_project_rules(start)
    may_show_hidden = gate.hides_forgotten or (gate.hides_some and new.title[0] < USER_RANK)
    if may_show_hidden and not new.cursor.own_title:  # it never changes after that
        requests = [
            entry.text
            for entry in gate.told(new.entries)
            if entry.role == "user" and is_request(entry.text)
        ]
        _, new.cursor.own_title = kept_title(
            (FIRST_PROMPT_RANK, title_of(telling_request(requests)))
        )
    new.title = gate.title(new.title, (new.cursor.own_title or "") if may_show_hidden else "")
    if gate.hides_forgotten and new.cursor.title is not None:
        new.cursor.title = new.title
    return gate


def _gate_by_title(new: NewEntries, rules: Privacy, session_id: str) -> Gate:
    """Return the gate of a session that no rule excludes, except perhaps by its title.

    Raises OSError."""
    from ...sessions.transcripts.gate import Family, Gate

    session, cursor = new.session, new.cursor
    start = cursor.start or ""
    if rules.has_name_rules(start):
        read_other_titles(new)
    names = (session.name or session.key, new.title[1])
    if session.is_remote:
        return Gate(rules, session_id, start, names)
    if not rules.has_rules(start):
        return Gate(rules, session_id, start, names).look_at(new.runtime, session.path)
    family = Family(rules, new.runtime, session.path)
    if cursor.kin is None:
        kin = family.kin(session.path, cursor.first or "", cursor.compacted)
        cursor.kin = [new.runtime.session_id_of(path) for path in kin]
    copied = family.copied(family.paths_of(cursor.kin))
    return Gate(rules, session_id, start, names, family, copied).look_at(new.runtime, session.path)


def count_visible(
    unread: Sequence[Session], cursors: ReadCursors, settings: Settings, own_session: OwnSession
) -> int:
    """Count the visible changed sessions beyond the update's, without unknown ones."""
    is_hidden = may_hide(settings, own_session.home)
    judged = [session for session in unread if is_hidden or session.is_elsewhere]
    known_sessions = []
    heads_left, by_name = MOST_HEADS, settings.has_name_rules
    for session in judged:
        cursor = cursors.get(session.key)
        start = cursor.start if cursor and (cursor.titled is not None or not by_name) else None
        if cursor and start is not None:
            known_sessions.append((session, start, cursor.title[1] if cursor.title else ""))
        elif heads_left:
            heads_left -= 1
            known_sessions += (
                own_session.deadline.attempt(
                    session.path, _from_head, session, own_session.runtime_of(session), by_name
                )
                or []
            )
    rules = _rules_for(settings, own_session.home, [start for _, start, _ in known_sessions])
    if rules is not None:
        known_sessions = [
            known
            for known in known_sessions
            if own_session.deadline.attempt(known[0].path, _is_visible, *known, own_session, rules)
        ]
    return len(unread) - len(judged) + len(known_sessions)


def _is_visible(
    session: Session, start: str, title: str, reader: OwnSession, rules: Privacy
) -> bool:
    """Check that the gate hides neither a session nor all entries at its transcript's end.

    A mirror that a rule has emptied hides the session, too. Raises OSError."""
    from ...sessions.transcripts.gate import Gate
    from ...sessions.transcripts.mirror import hidden_by

    gate = Gate(rules, reader.id_of(session), start, (session.name or session.key, title))
    if gate.rule.ignore or gate.until is not None or hidden_by(session.path):
        return False
    if session.is_remote or not gate.may_forget:
        return True
    with Opened(session.path) as descriptor:
        transcript = TranscriptReader(reader.runtime_of(session), first_line(descriptor))
        return any(
            [not gate.is_forgotten(entry) for entry in transcript.from_end(descriptor, HEAD_BYTES)]
        )


def _from_head(session: Session, runtime: Runtime, by_name: bool) -> list[tuple[Session, str, str]]:
    """Return the session with its directory and title from the beginning of its transcript.

    If a rule may name it, all of the transcript is searched; return [] if that is too long. Raises
    OSError."""
    with Opened(session.path) as descriptor:
        size = os.fstat(descriptor).st_size
        if by_name and size > MOST_SEARCHED_BYTES:
            return []
        owner = TitleOwner(runtime.session_id_of(session.path), descriptor)
        reader = TranscriptReader(runtime, first_line(descriptor), owner=owner)
        if by_name:
            reader.take_titles(descriptor, 0, size)
        head = TranscriptHead(runtime, descriptor, owner)
        return [
            (
                session,
                for_people(head.cwd),
                head.best_title(max(reader.title, (FIRST_PROMPT_RANK, "")))[1],
            )
        ]


def title_in_head(session: Session, runtime: Runtime) -> str:
    """Return the title at the beginning of a session's transcript, to compare; '' if it has none.

    Raises OSError."""
    with Opened(session.path) as descriptor:
        owner = TitleOwner(runtime.session_id_of(session.path), descriptor, BRIEF_OWNER_BYTES)
        return TranscriptHead(runtime, descriptor, owner).best_title((FIRST_PROMPT_RANK, ""))[1]
