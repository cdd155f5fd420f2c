"""The screen of `since`: sections with as many lines as have room, for a terminal or as Markdown."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.system.tables import AlignedRows, fitted, width_of
from ...common.system.terminal import Result, Terminal, called_as
from ...common.text.format import THEN, counted, enumerated, one_line, shorten
from ...common.text.markdown import escape
from ...common.text.sanitize import for_people, name_for_people
from ...common.text.timestamps import age, iso_time
from ..labels import project_of, quoted
from .output import iso

if TYPE_CHECKING:
    from ...history.patterns.project_work import ProjectWork, WorkSince, WorktreeChanges
    from ...history.patterns.work import WorkedSession

MOST_WAITING = 6
MOST_BROKEN = 4
MOST_CHANGED = 4
MOST_COMMITTED = 5
PLACE_CHARACTERS = 28
ERROR_CHARACTERS = 120
FILE_CHARACTERS = 24
DAY_SECONDS = 86400
TITLE_CHARACTERS = 160
_MARKDOWN_WIDTH = 200
_OUTER_LINES = 2  # the first and the last one


class WaitingSession(NamedTuple):
    """A session that waits for its user: the reason, since when, its place, and its question or
    request. `session_id` names it."""

    state: str
    since: float
    place: str
    text: str
    session_id: str


class _Section(NamedTuple):
    """A heading and its lines; of projects, also the number of requests, which a bar shows."""

    title: str
    lines: list[str]
    requests: int = 0


@dataclass(frozen=True)
class DoneWork(Result):
    """The work since a time, in milliseconds; at most `limit` lines show it.

    `options` make a command use the same store. `is_markdown` means that it is printed as
    Markdown."""

    since: int
    now: float
    work: WorkSince
    waiting: list[WaitingSession]
    limit: int
    options: str = ""
    is_markdown: bool = False

    def show(self, terminal: Terminal) -> None:
        if self.is_markdown:
            terminal.line(self._as_markdown())
            return
        with terminal.paged():
            self._show_sections(terminal)

    def _show_sections(self, terminal: Terminal) -> None:
        sections = self._sections(terminal.width)
        terminal.line(self._summary())
        lines = sum(1 + len(section.lines) for section in sections)
        has_room = _OUTER_LINES + lines + len(sections) <= self.limit
        numbers = [section.requests for section in sections if section.requests]
        most = max(numbers) if len(numbers) > 1 else math.inf  # nothing to compare
        titles = [terminal.paint("bold", section.title) for section in sections]
        shares = [section.requests / most for section in sections]
        for section, title in zip(sections, terminal.with_bars(titles, shares)):
            if has_room:
                terminal.line()
            terminal.line(title)
            for line in section.lines:
                terminal.line(f"  {line}")
        if self.work.projects:
            number = self.work.projects[0].sessions[-1].conversation.id
            terminal.line(f"To read one: {called_as()} read {number}{self.options}")

    def _as_markdown(self) -> str:
        blocks = [f"# {escape(self._summary())}"]
        for section in self._sections(_MARKDOWN_WIDTH):
            listed = "\n".join(f"- {escape(one_line(line))}" for line in section.lines)
            blocks.append(f"## {escape(section.title)}\n\n{listed}".rstrip())
        return "\n\n".join(blocks)

    def _summary(self) -> str:
        """Return the line with all sums."""
        works = self.work.sessions
        since = time.strftime("%a %Y-%m-%d %H:%M", time.localtime(self.since / 1000))
        if not works:
            return f"No session did anything since {since}."
        parts = [
            counted(sum(len(work.requests) for work in works), "request"),
            counted(len({path for work in works for path in work.files}), "file"),
            self._commits,
            counted(sum(len(work.test_runs) for work in works), "test run"),
        ]
        sessions, projects = len({work.id for work in works}), len(self.work.projects)
        return (
            f"Since {since}: {counted(sessions, 'session')} in {counted(projects, 'project')}, "
            f"{enumerated(parts)}."
        )

    def _sections(self, width: int) -> list[_Section]:
        room = width - 2
        sections = [
            _Section(f"Waits for you ({len(self.waiting)})", self._waiting_lines(room)),
            _Section(f"Still fails ({len(self.work.broken)})", self._broken_lines(room)),
            _Section(f"Not committed ({self._changes})", self._changed_lines(room)),
            _Section(f"Committed ({self._commits})", self._committed_lines(room)),
        ]
        sections = [section for section in sections if section.lines]
        left = self.limit - _OUTER_LINES - sum(1 + len(section.lines) for section in sections)
        return [*sections, *self._project_sections(left, room)]

    @property
    def _commits(self) -> str:
        return counted(sum(len(project.commits) for project in self.work.projects), "commit")

    @property
    def _changes(self) -> str:
        files = sum(
            len(each.files) for project in self.work.projects for each in project.uncommitted
        )
        return counted(files, "file")

    def _waiting_lines(self, room: int) -> list[str]:
        numbers = {work.id: _id(work) for work in self.work.sessions}
        rows = [
            (
                each.state,
                age(self.now - each.since),
                each.place,
                numbers.get(each.session_id, ""),
                each.text,
            )
            for each in self.waiting
        ]
        return _first_lines(rows, MOST_WAITING, room)

    def _broken_lines(self, room: int) -> list[str]:
        rows = []
        for each in self.work.broken:
            error = quoted(each.call.error, ERROR_CHARACTERS)
            times = f" ({each.times} times)" if each.times > 1 else ""
            text = f"{one_line(for_people(each.command))}: {error or 'failed'}{times}"
            ago = age(self.now - (each.call.timestamp or 0) / 1000)
            rows.append((ago, _place(each.directory), _id(each.work), text))
        return _first_lines(rows, MOST_BROKEN, room)

    def _changed_lines(self, room: int) -> list[str]:
        every = [each for project in self.work.projects for each in project.uncommitted]
        rows = [(_worktree(each), _named(each.files)) for each in every[:MOST_CHANGED]]
        lines = _aligned(rows, room)
        if len(every) > MOST_CHANGED:
            lines.append(f"and in {counted(len(every) - MOST_CHANGED, 'more worktree')}")
        return lines

    def _committed_lines(self, room: int) -> list[str]:
        rows = []
        for project in self.work.projects:
            if project.problem:
                rows.append((_place(project.directory), name_for_people(project.problem)))
            elif project.commits:
                subjects = [for_people(made.commit.subject) for made in project.commits]
                text = f"{len(subjects)}: {one_line('; '.join(subjects))}"
                rows.append((_place(project.directory), text))
        lines = _aligned(rows[:MOST_COMMITTED], room)
        if len(rows) > MOST_COMMITTED:
            lines.append(f"and in {counted(len(rows) - MOST_COMMITTED, 'more project')}")
        return lines

    def _project_sections(self, left: int, room: int) -> list[_Section]:
        """Return a section for each project, with as many sessions as `left` lines have room for.

        Projects with one session share a section."""
        blocks: list[tuple[ProjectWork, ...]]
        blocks = [(project,) for project in self.work.projects if len(project.sessions) > 1]
        single = tuple(project for project in self.work.projects if len(project.sessions) == 1)
        blocks += [single] if single else []
        shown = blocks[: max(1, left // 2)]
        sizes = [sum(len(project.sessions) for project in block) for block in shown]
        is_long = self.now - self.since / 1000 > 2 * DAY_SECONDS
        form = "%a %d %H:%M" if is_long else "%H:%M"
        of_several = "Other projects" if len(blocks) > 1 else "Projects"
        sections = [
            _block_section(
                block,
                number,
                form,
                room,
                of_several if len(block) > 1 else _place(block[0].directory),
            )
            for block, number in zip(shown, _shares(sizes, left))
        ]
        if hidden := sum(map(len, blocks[len(shown) :])):
            more = counted(hidden, "more project")
            sections.append(_Section(f"and {more}: --limit N shows them", []))
        return sections

    def as_json(self) -> dict[str, Any]:
        return {
            "since": iso(self.since),
            "waiting": [
                {
                    "state": each.state,
                    "since": iso_time(each.since),
                    "place": each.place,
                    "text": each.text,
                    "session": each.session_id,
                }
                for each in self.waiting
            ],
            "failing": [
                {
                    "command": each.command,
                    "error": for_people(each.call.error),
                    "times": each.times,
                    "directory": each.directory,
                    "session": each.work.id,
                    "at": iso(each.call.timestamp),
                }
                for each in self.work.broken
            ],
            "projects": [_project_json(project) for project in self.work.projects],
        }


def _aligned(rows: Sequence[tuple[str, ...]], room: int) -> list[str]:
    """Return rows as lines of aligned columns; the last column is cut to the room."""
    return AlignedRows([(row[:-1], partial(fitted, row[-1])) for row in rows]).lines(room)


def _first_lines(rows: Sequence[tuple[str, ...]], most: int, room: int) -> list[str]:
    """Return the first rows as aligned lines; a line for the rest, unless it is only one row."""
    shown = rows if len(rows) == most + 1 else rows[:most]
    left = len(rows) - len(shown)
    return [*_aligned(shown, room), *([f"and {left} more: --json lists them"] if left else [])]


def _session_lines(rows: Sequence[tuple[str, str, str, str]], room: int) -> list[str]:
    """Return a line for each session: its number, its start, its requests, and its work."""
    cells = [(row[:2], partial(_title_and_work, *row[2:])) for row in rows]
    return AlignedRows(cells, [0]).lines(room)


def _title_and_work(title: str, did: str, room: int) -> str:
    left = max(1, room - width_of(did) - 2 * bool(did))
    return f"{fitted(title, left)}{f'  {did}' if did else ''}"


def _shares(wanted: Sequence[int], left: int) -> list[int]:
    """Return how many lines each project gets of those that are left, besides its heading."""
    shares = [1 for _ in wanted]
    left -= len(wanted) + sum(shares)
    while left > 0 and shares != list(wanted):
        for at, number in enumerate(wanted):
            if shares[at] < number and left > 0:
                shares[at] += 1
                left -= 1
    return shares


def _block_section(
    projects: Sequence[ProjectWork], number: int, form: str, room: int, title: str
) -> _Section:
    """Return the section of a project, or of several with one session each."""
    pairs = [(project, work) for project in projects for work in project.sessions]
    works = [work for _, work in pairs]
    ranked = sorted(pairs, key=lambda pair: _rank(*pair), reverse=True)
    shown = sorted(ranked[:number], key=lambda pair: pair[1].first_at)
    has_several = len(projects) > 1
    [(usual, _)] = Counter(work.conversation.runtime for work in works).most_common(1)
    rows = [
        _session_row(project, work, form, with_place=has_several, usual_runtime=usual)
        for project, work in shown
    ]
    requests = sum(len(work.requests) for work in works)
    lines = _session_lines(rows, room)
    return _Section(f"{title}: {_sums(works, len(shown))}", lines, requests)


def _rank(project: ProjectWork, work: WorkedSession) -> tuple[int, int]:
    """Return a key that is larger for sessions with more results."""
    return 3 * project.commits_of(work) + min(len(work.files), 5), len(work.requests)


def _session_row(
    project: ProjectWork, work: WorkedSession, form: str, *, with_place: bool, usual_runtime: str
) -> tuple[str, str, str, str]:
    began = time.strftime(form, time.localtime(work.first_at / 1000))
    titles = [quoted(title, TITLE_CHARACTERS) for title in work.titles]
    runtime = work.conversation.runtime
    did = [runtime] if runtime != usual_runtime else []
    if work.files:
        more = f" and {len(work.files) - 1} more" if len(work.files) > 1 else ""
        name = one_line(for_people(os.path.basename(work.files[0])))
        did.append(f"{shorten(name, FILE_CHARACTERS)}{more}")
    if commits := project.commits_of(work):
        did.append(counted(commits, "commit"))
    if tests := _test_verdict(work):
        did.append(tests)
    title = THEN.join(filter(None, titles)) or "(no request)"
    began = f"{began}  {_place(project.directory)}:" if with_place else began
    return _id(work), began, title, ", ".join(did)


def _test_verdict(work: WorkedSession) -> str:
    """Return how the last run of tests ended; '' without any."""
    ended = [call.outcome for call in work.test_runs]
    return {"ok": "tests pass", "error": "tests fail", "": "tests ran"}[ended[-1]] if ended else ""


def _sums(works: Sequence[WorkedSession], shown: int) -> str:
    part = f" ({shown} shown)" if shown < len(works) else ""
    parts = [f"{counted(len(works), 'session')}{part}"]
    parts.append(counted(sum(len(work.requests) for work in works), "request"))
    if files := len({path for work in works for path in work.files}):
        parts.append(counted(files, "file"))
    if runs := sum(len(work.test_runs) for work in works):
        parts.append(counted(runs, "test run"))
    return ", ".join(parts)


def _place(directory: str) -> str:
    return shorten(one_line(project_of(directory)), PLACE_CHARACTERS) or "-"


def _worktree(changes: WorktreeChanges) -> str:
    """Return the project of a worktree, with its own name and branch."""
    place, name = _place(changes.root), name_for_people(os.path.basename(changes.root))
    place = place if name in (place, changes.branch) else f"{place}/{name}"
    return shorten(
        f"{place} ({name_for_people(changes.branch)})" if changes.branch else place,
        PLACE_CHARACTERS,
    )


def _named(files: Iterable[str]) -> str:
    """Return the last files, as a list that a line may cut, after their number."""
    names = [one_line(for_people(path)) for path in files][::-1]
    return f"{len(names)} files: {', '.join(names)}" if len(names) > 1 else names[0]


def _id(work: WorkedSession) -> str:
    return str(work.conversation.id)


def _project_json(project: ProjectWork) -> dict[str, Any]:
    return {
        "project": project_of(project.directory),
        "directory": project.directory,
        "sessions": [
            {
                "id": work.id,
                "conversation": work.conversation.id,
                "runtime": work.conversation.runtime,
                "title": for_people(work.conversation.title),
                "first": iso(work.first_at),
                "last": iso(work.last_at),
                "requests": [for_people(text) for text in work.requests],
                "files": list(work.files),
                "commits": project.commits_of(work),
                "test_runs": len(work.test_runs),
                "tests": _test_verdict(work) or None,
                "unfinished": work.is_unfinished,
                "question": for_people(work.question) or None,
            }
            for work in project.sessions
        ],
        "commits": [
            {
                "id": made.commit.id,
                "at": iso(made.commit.at),
                "subject": for_people(made.commit.subject),
                "session": made.session_id or None,
            }
            for made in project.commits
        ],
        "uncommitted": [
            {"worktree": each.root, "branch": each.branch or None, "files": list(each.files)}
            for each in project.uncommitted
        ],
        "problem": for_people(project.problem) or None,
    }
