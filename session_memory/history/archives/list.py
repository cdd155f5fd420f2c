"""The archives in a directory, their text for an agent, and their sessions' former names.

Archives of sessions that rules exclude, or whose text rules hide, are in a private folder beside
the others. It is hidden, readable only for this user, and neither listed nor searched. Before
archives are read or written, they are moved into or out of this folder by the current rules.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import reduce
from typing import Any

from ...common.errors import SessionMemoryError
from ...common.system.json import as_list, as_string
from ...common.text.format import counted, one_line, shorten
from ...common.text.sanitize import for_people, for_prompt
from ...common.text.timestamps import epoch_seconds
from ...sessions.confined_files import OutsideGroupError, pinned
from ...sessions.settings.homes import Home, host_of, private_beside
from ...sessions.settings.host_layout import Layout
from ...sessions.settings.privacy import Privacy
from ...sessions.settings.rules import Rule, stricter
from ...sessions.transcripts.pointers import earlier_names
from ._beginnings import Beginnings
from ._folder import ArchivesLock, KnownFolder, archive_facts, archive_names

RECENT_CHARACTERS = 500


def find_archive(directory: str, session_id: str) -> tuple[str, dict[str, Any]] | None:
    """Return the path and the facts of a session's archive."""
    return next(
        (
            (path, facts)
            for path, facts in list_archives(directory)
            if facts["session"] == session_id
        ),
        None,
    )


class KnownArchives:
    """The archives that a run knows, so it does not list a folder for each of many sessions.

    It also has the `beginnings` of transcripts that the run has read."""

    def __init__(self) -> None:
        self.beginnings = Beginnings()
        # by folder, independent of the path to it
        self._folders: dict[tuple[int, int], KnownFolder] = {}

    def folder(self, directory: str) -> KnownFolder:
        """Return the known archives of a folder. Raises OSError."""
        status = os.stat(directory)
        return self._folders.setdefault((status.st_dev, status.st_ino), KnownFolder())

    def find(
        self, directory: str, session_id: str, token: bytes | None = None
    ) -> tuple[str, dict[str, Any]] | None:
        """Return the path and the facts of a session's archive, without applying rules.

        `token` is from the lock that the caller holds. Without the lock, an archive that
        another process has just added may be missing. Raises OSError."""
        folder = self.folder(directory)
        archive = folder.find(directory, session_id)
        if archive is None and not folder.is_current(directory, token):
            folder.read(directory, token)
            archive = folder.find(directory, session_id)
        return archive

    def move(self, before: str, path: str, session_id: str) -> None:
        """Note that a session's archive moves from the path `before`, '' if it is new, to `path`.

        Raises OSError."""
        if before:
            self.folder(os.path.dirname(before)).remove(os.path.basename(before))
        self.folder(os.path.dirname(path)).add(os.path.basename(path), session_id)

    @contextmanager
    def changing(self, held: ArchivesLock, *directories: str) -> Iterator[None]:
        """Keep knowing folders that the caller, who holds the lock, changes meanwhile."""
        token = held.token
        current = [
            (directory, folder)
            for directory, folder in zip(directories, map(self.folder, directories))
            if folder.is_current(directory, token)
        ]
        yield
        for directory, folder in current:
            folder.set_current(directory, held.token)


def list_archives(directory: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path and the facts of every archive in `directory`, in no particular order."""
    for name in archive_names(directory):
        facts = archive_facts(f"{directory}/{name}")
        if facts is not None:
            yield f"{directory}/{name}", facts


def given_title(path: str) -> str:
    """Return the title that a person gave the archive at this path; '' if there is none."""
    facts = archive_facts(path) or {}
    return str(facts["title"]) if facts.get("is_named") else ""


def free_path(stem: str) -> str:
    """Return an unused path for an archive, beginning with `stem`."""
    path, number = f"{stem}.md", 2
    while os.path.lexists(path):
        path, number = f"{stem}-{number}.md", number + 1
    return path


def compaction_text(archive: str) -> str:
    """Return the text for an agent after a compaction: the path of the whole conversation."""
    return (
        f"This conversation was compacted. Everything said before is kept and can be searched in "
        f"{for_prompt(archive)}"
    )


def recent_text(
    directory: str,
    archives: Iterable[tuple[str, dict[str, Any]]],
    cwd: str,
    count: int,
    own_id: str,
) -> str | None:
    """Return the text for a new session in `cwd` about its last conversations there, or None.

    It lists the last `count` conversations, except the one of session `own_id`. `archives` are all
    archives in `directory`; a path of '' is not shown."""
    conversations = [
        (epoch_seconds(facts.get("last")) or 0.0, path, facts)
        for path, facts in archives
        if facts.get("cwd") in (cwd, for_people(cwd)) and facts["session"] != own_id
    ]
    if not conversations or not count:
        return None
    lines = [f"Last conversations here, kept in {for_prompt(directory)}:"]
    for last, path, facts in sorted(conversations, key=lambda conversation: -conversation[0])[
        :count
    ]:
        messages = facts.get("messages")
        size = f", {counted(messages, 'message')}" if isinstance(messages, int) else ""
        name = f": {for_prompt(os.path.basename(path))}" if path else ""
        day = time.strftime("%Y-%m-%d", time.localtime(last))
        line = f"- {shorten(one_line(for_prompt(facts['title'])), 80)} ({day}{size}){name}"
        if sum(map(len, lines)) + len(lines) + len(line) > RECENT_CHARACTERS:
            break
        lines.append(line)
    return "\n".join(lines) if len(lines) > 1 else None


PRIVATE_FOLDER = ".private-conversations"
_WAIT_SECONDS = 0.2  # for a writer; archives that cannot be moved are not shown either


def rule_of(facts: dict[str, Any], privacy: Privacy) -> Rule:
    """Return the rule for the session of an archive with these facts.

    It is the strictest rule for the session, for any directory it worked in, and for any session
    that it may be a copy of."""
    rule = _rule_by_mirror(facts.get("is_excluded"), privacy)
    start = as_string(facts.get("cwd"))
    if not privacy.has_rules(start):
        return rule
    known = [as_string(facts.get(key)) for key in ("session", "name", "title")]
    rule = stricter(rule, privacy.rule(start, *filter(None, known)))
    for directory in as_list(facts.get("directories")):
        rule = stricter(rule, privacy.of_directory(as_string(directory), start))
    for names in as_list(facts.get("copied")):
        rule = stricter(rule, privacy.of_names(*filter(None, map(as_string, as_list(names)))))
    return rule


def _rule_by_mirror(hidden_by: object, privacy: Privacy) -> Rule:
    """Return the rule for a session by what its mirror once said of the rule that hid it.

    These are all its directories and names. If a mirror of an earlier version said only that there
    is a rule, the archive stays hidden until it is written again."""
    if not hidden_by:
        return Rule()
    directories, names = [*map(as_list, as_list(hidden_by)), [], []][:2]
    rules = [privacy.rule(as_string(each), *map(as_string, names)) for each in directories]
    return reduce(stricter, rules) if rules else Rule(ignore=True)


@contextmanager
def private_folder(directory: str, *, make: bool = False) -> Iterator[str]:
    """Yield a path to the private folder beside `directory`.

    Raises FileNotFoundError, OutsideGroupError."""
    beside = f"{directory}/.."
    with pinned(beside, f"{beside}/{PRIVATE_FOLDER}", make=make) as folder:
        yield folder


@contextmanager
def private_folder_if_there(directory: str) -> Iterator[str]:
    """Yield a path to the private folder beside `directory`; '' if there is none."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(private_folder(directory))
        except (FileNotFoundError, OutsideGroupError):
            folder = ""
        yield folder


def private_path(directory: str, name: str) -> str:
    """Return the path for the archive `name` of `directory` in the private folder."""
    return f"{private_beside(directory)}/{name}"


def is_private_path(path: str) -> bool:
    """Check if an archive is in a private folder."""
    return os.path.basename(os.path.dirname(path)) == PRIVATE_FOLDER


def settle(directory: str, privacy: Privacy) -> None:
    """Move each archive to the folder that the current rules require."""
    visible_archives(directory, privacy)


def visible_archives(directory: str, privacy: Privacy) -> list[tuple[str, dict[str, Any]]]:
    """Return the path and the facts of every visible archive in `directory`, in no fixed order.

    Each is first moved to the right folder. An archive that cannot be moved stays hidden."""
    visible: list[tuple[str, dict[str, Any]]] = []
    hidden: list[str] = []
    for path, facts in list_archives(directory):
        if rule_of(facts, privacy).is_private:
            hidden.append(path)
        else:
            visible.append((path, facts))
    try:
        if not hidden:
            with private_folder(directory) as folder:
                if not os.listdir(folder):
                    return visible
        held = ArchivesLock(directory, _WAIT_SECONDS)
    # There is no private folder, or another process is writing
    except (OSError, SessionMemoryError):
        return visible
    try:
        with private_folder(directory, make=True) as folder:
            shown = [
                (path, facts)
                for path, facts in list_archives(folder)
                if not rule_of(facts, privacy).is_private
            ]
            if hidden or shown:
                held.change_token()
            for path in hidden:
                _move(path, folder)
            for path, facts in shown:
                visible.append((_move(path, directory), facts))
    except (OSError, OutsideGroupError):
        pass
    finally:
        held.close()
    return visible


def facts_without_text(directory: str, privacy: Privacy) -> list[dict[str, Any]]:
    """Return the facts of archives that may be shown only without text.

    They include the title only if a person gave it."""
    facts_of_archives = [facts for _, facts in list_archives(directory)]
    try:
        with private_folder(directory) as folder:
            facts_of_archives += [facts for _, facts in list_archives(folder)]
    except (OSError, OutsideGroupError):
        pass
    return [
        {
            **facts,
            "title": (facts["title"] if facts.get("is_named") else "")
            or facts.get("name")
            or facts["session"],
        }
        for facts in facts_of_archives
        if not (rule := rule_of(facts, privacy)).ignore and not rule.quote
    ]


def _move(path: str, folder: str) -> str:
    """Move an archive into a folder under a free name, and return its path there."""
    target = free_path(f"{folder}/{os.path.basename(path).removesuffix('.md')}")
    os.rename(path, target)
    return target


Names = dict[str, list[str]]  # by the id of a session


def former_names(home: Home) -> Names:
    """Return the former names of a home's sessions, by their ids, the latest last."""
    named = archived_names(home.conversations_dir)
    host = host_of(home.root)
    if host not in ("", home.root):
        with suppress(ImportError):  # without apsw there is no host either
            for session, names in earlier_names(
                Layout(host).database, os.path.basename(home.root)
            ).items():
                named.setdefault(session, []).extend(names)
    return named


def archived_names(directory: str) -> Names:
    """Return the names with which sessions were archived in a directory or its private folder."""
    dated_names: list[tuple[float, str, str]] = []
    for folder in (directory, os.path.dirname(private_path(directory, ""))):
        for _, facts in list_archives(folder):
            last = epoch_seconds(facts.get("last")) or 0.0
            names = [facts.get("title") if facts.get("is_named") else "", facts.get("name")]
            dated_names += [
                (last, facts["session"], name) for name in names if isinstance(name, str) and name
            ]
    named: Names = {}
    for _, session, name in sorted(dated_names, key=lambda dated_name: dated_name[0]):
        named.setdefault(session, []).append(name)
    return named
