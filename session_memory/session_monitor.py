"""The functions that other programs import, as the seed of this project names them.

The hooks call two of them: `open_update` for a prompt, `archive_transcript` for an archive. They
import each from its own module, because this one loads all of them.

`format` names a runtime's transcripts: `agent-sdk` for Claude Code and claude-agent-sdk, `pi` for
Pi."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from .awareness.activity.changes import Observation, OwnSession
from .awareness.activity.report import SessionSummary, summarize
from .awareness.activity.session_state import KnownState
from .awareness.activity.update_text import UpdateForm
from .awareness.activity.updates import open_update
from .common.text.format import shorten
from .history.archives.list import settle
from .history.archives.writer import ArchiveSource, archive_transcript
from .sessions.runtimes import claude, pi
from .sessions.runtimes.table import runtime
from .sessions.settings.homes import SEED_MEMORY_DIRS, Home, home_at, person_home
from .sessions.settings.privacy import Privacy
from .sessions.transcripts import log as transcript_log
from .sessions.transcripts.entries import Entry, Session, ToolUse
from .sessions.transcripts.gate import Family, describe
from .sessions.transcripts.reader import TranscriptReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .awareness.activity.report import Report
    from .awareness.activity.update_text import Reports

AnyPath = str | os.PathLike[str]

__all__ = [
    "ArchiveSource",
    "Entry",
    "EntryList",
    "Observation",
    "OwnSession",
    "SessionSummary",
    "ToolUse",
    "archive_session",
    "archive_transcript",
    "encode_cwd",
    "get_session_updates",
    "open_update",
    "parse_jsonl_entries",
    "read_session_log",
    "resolve_agent_sdk_jsonl",
    "resolve_pi_jsonl",
    "summarize_entries",
]

MAX_CHARACTERS = 500
NO_LOG = "No session log found."
_SEARCHES = ("grep", "glob")  # the seed counts them as reads; an update does not


class EntryList(list[Entry]):
    """Entries in file order; `unreadable` counts the skipped records that could not be read."""

    unreadable = 0


def get_session_updates(
    *,
    current_session: str,
    sessions_dir: AnyPath,
    cursor_file: AnyPath,
    jsonl_resolver: Callable[[str], AnyPath | None],
    format: str,
    first_sight_hours: float | None = None,
) -> str | None:
    """Return the other sessions' activity since `current_session` last asked, or None.

    The sessions are named in `sessions_dir`. The text begins with `[Session Activity]` and has at
    most 500 characters; nothing is reported twice. The first call looks back `first_sight_hours`,
    by default as many as the settings say. `jsonl_resolver` returns the transcript of a
    session, or None if there is none yet; if it raises, only that session is skipped. A corrupt
    cursor file is deleted, and sessions are then reported as at first sight. Raises LockedError if
    another process holds the cursors for long, OSError if the cursor file cannot be read or
    written, ValueError if `first_sight_hours` is negative or no number."""
    if first_sight_hours is not None and not 0 <= first_sight_hours < float("inf"):
        raise ValueError(f"first_sight_hours is {first_sight_hours}, not a number from 0")
    cursor_path = os.path.realpath(cursor_file)
    KnownState.delete_if_corrupt(cursor_path)
    sessions = []
    for name in runtime(format).session_names(str(sessions_dir)):
        try:
            path = jsonl_resolver(name) if name != current_session else None
        except Exception:
            continue
        if path is not None:
            sessions.append(Session(name, os.fspath(path), name))
    home = _home_of(os.path.abspath(sessions_dir))
    session = OwnSession(current_session, runtime(format), cursor_path, home=home)
    settings = home.settings()
    if first_sight_hours is not None:
        settings.first_sight_hours = first_sight_hours
    observed = Observation(session, sessions, settings)
    form = SeedForm()
    with open_update(observed, now=time.time(), limit=MAX_CHARACTERS, form=form) as update:
        return update.text


class SeedForm(UpdateForm):
    """The seed's form of an update.

    Each session gets a line with counts of its actions, while there is room."""

    KEEPS_LEFTOVERS = True
    RECALLS = False

    def most_lines(self, limit: int) -> int:
        """Return how many lines have room."""
        return self.most_with_room(limit)

    def worth_a_line(self, own_session: OwnSession, reports: Reports, most: int) -> Reports:
        """Return the first sessions, as many as get a line."""
        return reports[:most]

    def named_files(self, report: Report) -> list[str]:
        """Return the edited file if there is only one."""
        edited = report.summary.edited_files
        return [*edited] if len(edited) == 1 else []

    def request(self, report: Report) -> str:
        """Return the first request."""
        return report.summary.first_request

    def actions(
        self, report: Report, files: list[str], ran: list[str], tools: list[str]
    ) -> list[str]:
        """Return the actions with the one edited file, without it, without the reads."""
        summary = report.summary
        edited = _counted("edited", len(summary.edited_files), "file", report)
        is_named = files and not report.is_partial
        edited_file = f"edited {shorten(files[0], self.FILE_CHARACTERS)}" if is_named else edited
        read = _counted("read", summary.files_read, "file", report)
        commands = _counted("ran", summary.commands, "command", report)
        used = "" if edited or read or commands else self.used(tools)
        heard = self.heard(report)
        choices = (
            (heard, edited_file, read, commands, used),
            (edited_file, commands),
            (edited, commands),
            (edited or commands or read or heard or used,),
        )
        return [*[", ".join([part for part in parts if part]) for parts in choices], ""]

    def least(self, report: Report, *, has_file: bool, has_title: bool) -> tuple[bool, bool]:
        """A line needs the request, and never the answer."""
        return True, False


def _counted(verb: str, number: int, noun: str, report: Report) -> str:
    """Return `edited 3 files`, '' for none."""
    return f"{verb} {report.counted(number, noun)}" if number else ""


def read_session_log(*, jsonl_path: AnyPath | None, format: str, lines: int = 50) -> str:
    """Return the last `lines` entries of a transcript as a log for people and agents.

    The settings' rules limit it to the permitted parts. It is '' if they exclude the session, and
    NO_LOG if there is no transcript. Raises OSError if the transcript cannot be read."""
    path = os.path.abspath(jsonl_path) if jsonl_path else ""
    if not os.path.lexists(path):
        return NO_LOG
    privacy = Privacy(os.environ)
    described = describe(runtime(format), path, privacy)
    gate = Family(privacy, runtime(format), path).gate(path, described)
    entries, unreadable = transcript_log.last_entries(runtime(format), path, lines, gate)
    return transcript_log.render(entries, unreadable)


def archive_session(
    *, jsonl_path: AnyPath | None, conversations_dir: AnyPath, format: str, title: str = ""
) -> Path | None:
    """Write or update the Markdown archive of a transcript in `conversations_dir`.

    Return its path; None if there is no transcript or no message in it. `title` is a person's title
    for the conversation, '' for the transcript's own. The person's settings apply: if they exclude
    any of it, the archive is written to `.private-conversations/` beside that directory. Raises
    OSError, LockedError."""
    path = os.path.abspath(jsonl_path) if jsonl_path else ""
    directory = os.path.abspath(conversations_dir)
    home = person_home(os.environ)
    privacy = Privacy(os.environ, home)
    settle(directory, privacy)
    source = ArchiveSource(runtime(format).session_id_of(path), path, runtime(format), title=title)
    written = archive_transcript(source, directory, home.settings(), time.time(), privacy=privacy)
    return Path(written) if written else None


def _home_of(sessions_dir: str) -> Home:
    """Return the agent home that names its sessions in `sessions_dir`; the person's if there is
    none."""
    memory_dir, _, _ = sessions_dir.rpartition("/")
    root, _, name = memory_dir.rpartition("/")
    return (
        home_at(root, os.environ, sessions_dir=sessions_dir)
        if name in SEED_MEMORY_DIRS
        else person_home(os.environ)
    )


def parse_jsonl_entries(lines: Iterable[str | bytes], format: str) -> EntryList:
    """Return the entries in the lines of a transcript.

    Lines are one JSON record each, with or without their newline. Offsets count from the first
    line."""
    placed: list[tuple[int, bytes]] = []
    offset = 0
    for line in lines:
        content = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
        placed.append((offset, content))
        offset += len(content) + (not content.endswith(b"\n"))
    reader = TranscriptReader(runtime(format), placed[0][1] if placed else b"")
    entries = EntryList(list(reader.backward(reversed(placed)))[::-1])
    entries.unreadable = reader.unreadable
    return entries


def summarize_entries(entries: Iterable[Entry]) -> SessionSummary | None:
    """Return a summary of the entries; None if there are none. Searches count as reads."""
    return summarize(_with_searches_as_reads(entry) for entry in entries)


def _with_searches_as_reads(entry: Entry) -> Entry:
    tools = [
        ToolUse(tool.name, tool.argument, "read", tool.call_id)
        if tool.name.lower() in _SEARCHES
        else tool
        for tool in entry.tools
    ]
    return entry.with_tools(tuple(tools))


def encode_cwd(cwd: AnyPath) -> str:
    """Return the name of Claude Code's project directory for `cwd`, such as `-Users-foo-home`.

    The example is for `/Users/foo/home`."""
    return claude.encode_cwd(os.fspath(cwd))


def resolve_agent_sdk_jsonl(sessions_dir: AnyPath, session_name: str, cwd: AnyPath) -> Path | None:
    """Return the path of the transcript that `<sessions_dir>/<session_name>.json` points to.

    The transcript may not exist yet. Return None if that file does not exist or has no valid id."""
    session_id = claude.named_session_id(os.fspath(sessions_dir), session_name)
    if not session_id:
        return None
    return Path(
        claude.RUNTIME.transcript_path(
            claude.RUNTIME.config_dir(os.environ), os.fspath(cwd), session_id
        )
    )


def resolve_pi_jsonl(sessions_dir: AnyPath, session_name: str) -> Path | None:
    """Return the transcript that pi would continue, or None.

    It is the last one in `<sessions_dir>/<session_name>/`."""
    path = pi.RUNTIME.latest_transcript(os.fspath(sessions_dir), session_name)
    return Path(path) if path else None
