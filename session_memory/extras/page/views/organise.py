"""Sessions: all of them, by period, project, runtime and label, and actions on several at once."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

from ....app.commands.archive import archive_sessions
from ....app.commands.arguments import NO_LIMIT
from ....app.commands.forget import Amounts, amounts_of, forget_sessions
from ....app.commands.opened_store import OpenStore, with_store
from ....app.labels import project_of
from ....app.upkeep.rules import follow_rules
from ....common.extensions import load
from ....common.text.format import counted
from ....common.text.timestamps import now_milliseconds
from ....extension_points import EXPORT_FORMATS
from ....history.export import ExportHead, export
from ....history.marks import Marks, SessionKey, SessionMarks
from ....history.store.values import Conversation, Filter
from ....history.titles import Titles
from ....sessions.settings.keys import set_key
from .._choices import chosen_of, period, places
from .._labels import ShownRuntime, shown_runtime
from .._page_request import NotFoundError, PageRequest
from .._view import Action, Download, FormFields, View
from .sessions import latest_sessions

Done = TypeVar("Done")

DEFAULT_PERIOD = "30d"
CONVERSATIONS = 1000  # the latest ones
SHOWN = 300  # sessions
MEDIA_TYPES = {"html": "text/html", "markdown": "text/markdown", "json": "application/json"}
ENDINGS = {"html": "html", "markdown": "md", "json": "json"}


class MarkedSession(NamedTuple):
    """A session in the table; `key` names it in forms, `title` to people.

    `text` is what it is found by, in lower case."""

    key: str
    conversation: Conversation
    title: str
    text: str
    runtime: ShownRuntime
    project: str
    marks: SessionMarks

    @classmethod
    def all_of(
        cls, request: PageRequest, sessions: list[Conversation], marks: Marks
    ) -> list[MarkedSession]:
        titles = Titles(request.store, sessions)
        return [cls._of(session, titles, marks.of(_key_of(session))) for session in sessions]

    @classmethod
    def _of(cls, session: Conversation, titles: Titles, marks: SessionMarks) -> MarkedSession:
        project = project_of(session.cwd)
        words = (session.title, titles.later(session), project, *marks.labels)
        return cls(
            "/".join(_key_of(session)),
            session,
            titles.of(session),
            " ".join(words).casefold(),
            shown_runtime(session.runtime),
            project,
            marks,
        )


def _values(request: PageRequest) -> dict[str, Any]:
    """Return the `sessions` that fit all filters, the pinned ones first, then the latest.

    Pinned ones are listed whatever the period is."""
    times, since = period(request, DEFAULT_PERIOD)
    chosen = places(request)
    marks, marks_problem = Marks.readable(request.location.home)
    label, typed = request.one("label"), request.one("q").strip().casefold()
    wanted = Filter(directories=chosen.directories, runtime=request.one("runtime"), since=since)
    sessions, is_cut = _found(request, marks, wanted, label)
    listed = MarkedSession.all_of(request, sessions, marks)
    listed = [session for session in listed if typed in session.text]
    listed.sort(key=lambda session: session.conversation.last_message_at or 0, reverse=True)
    listed.sort(key=lambda session: -session.marks.pinned_at)
    labels = sorted({label for each in marks.of_sessions.values() for label in each.labels})
    return {
        "sessions": listed[:SHOWN],
        "count": len(listed),
        "conversations_read": CONVERSATIONS if is_cut else 0,
        "times": times,
        "marks_problem": marks_problem,
        "projects": chosen.projects,
        "runtimes": chosen.runtimes,
        "labels": chosen_of([("", "All labels"), *((name, name) for name in labels)], label),
        "asked": {
            name: request.one(name) for name in ("q", "label", "project", "runtime", "since")
        },
    }


def _found(
    request: PageRequest, marks: Marks, wanted: Filter, label: str
) -> tuple[list[Conversation], bool]:
    """Return the latest sessions of a period, or all of them with a `label`, and pinned ones.

    Also return whether there may be more conversations than were read."""
    since_of = {
        key: None if each.pinned_at else wanted.since
        for key, each in marks.of_sessions.items()
        if (label in each.labels if label else each.pinned_at)
    }
    latest = wanted._replace(limit=CONVERSATIONS)
    conversations = [] if label else request.store.conversations(latest)
    sessions = latest_sessions(request, conversations)
    known = {_key_of(session) for session in sessions}
    for key, since in since_of.items():
        if key not in known:
            sessions += _of_session(request, key, wanted._replace(since=since))
    return sessions, len(conversations) == CONVERSATIONS


def _of_session(request: PageRequest, key: SessionKey, wanted: Filter) -> list[Conversation]:
    """Return the latest conversation of a session, or nothing."""
    wanted = wanted._replace(session=key[1], limit=CONVERSATIONS)
    sessions = latest_sessions(request, request.store.conversations(wanted))
    return [session for session in sessions if _key_of(session) == key]


def _key_of(session: Conversation) -> SessionKey:
    return session.home, session.session_id


def _chosen_sessions(request: PageRequest, keys: list[str]) -> list[Conversation]:
    """Return the latest conversation of each named session. Raises NotFoundError."""
    selected = []
    for key in dict.fromkeys(keys):
        home, _, id = key.partition("/")
        selected += _of_session(request, (home, id), Filter()) if id else []
    if not selected:
        raise NotFoundError("no session is selected", "select some in the list of sessions")
    return selected


def _chosen(request: PageRequest) -> dict[str, Any]:
    """Return the selected sessions, their labels, and the formats of an export."""
    marks, marks_problem = Marks.readable(request.location.home)
    selected = _chosen_sessions(request, request.query.get("session", []))
    listed = MarkedSession.all_of(request, selected, marks)
    return {
        "sessions": listed,
        "marks_problem": marks_problem,
        "labels": sorted({label for session in listed for label in session.marks.labels}),
        "formats": list(ENDINGS),
        "query": urlencode([("session", session.key) for session in listed]),
    }


def _lost(request: PageRequest) -> dict[str, Any]:
    """Return the amounts that forgetting the selected sessions would delete."""
    selected = _chosen_sessions(request, request.query.get("session", []))
    ids = {session.session_id for session in selected}
    amounts: Amounts = _with_store(request, partial(amounts_of, sessions=ids))
    return {"amounts": str(amounts)}


def _with_store(request: PageRequest, work: Callable[[OpenStore], Done]) -> Done:
    """Return the result of `work` with a store that may be written."""
    arguments = argparse.Namespace(home=request.location.home.path, json=True)
    return with_store(arguments, work, writes=True)


def _mark(request: PageRequest, fields: FormFields) -> str:
    """Add or remove a label or a pin."""
    keys = [_key_of(session) for session in _chosen_sessions(request, fields.all("session"))]
    with Marks.changing(request.location.home) as marks:
        if fields.one("do") == "label":
            marks.add_label(keys, fields.one("label"))
        elif fields.one("do") == "unlabel":
            marks.remove_label(keys, fields.one("label"))
        elif fields.one("do") == "pin":
            marks.pin(keys, round(request.now))
        elif fields.one("do") == "unpin":
            marks.pin(keys, 0)
    return "/sessions"


def _archive(request: PageRequest, fields: FormFields) -> str:
    """Write the archives of the selected sessions. Raises SessionMemoryError."""
    selected = _chosen_sessions(request, fields.all("session"))
    home = request.location.home
    path = home.root if home.rules_files else None
    archive_sessions({session.session_id for session in selected}, path)
    return "/sessions"


def _exclude(request: PageRequest, fields: FormFields) -> str:
    """Hide the selected sessions by rules in config.yaml."""
    location = request.location
    for session in _chosen_sessions(request, fields.all("session")):
        set_key(location.home.config_file, ("sessions", session.session_id, "ignore"), True)
    follow_rules(location, lambda _: None)
    return "/sessions"


def _forget(request: PageRequest, fields: FormFields) -> str:
    """Forget the selected sessions for good. Raises SessionMemoryError."""
    selected = _chosen_sessions(request, fields.all("session"))
    ids = {session.session_id for session in selected}
    _with_store(request, partial(forget_sessions, sessions=ids))
    return "/sessions"


def _exported(request: PageRequest) -> tuple[str, str, Iterator[str]]:
    """Return the name, the media type and the pieces of a file with the selected sessions."""
    form = request.one("format")
    form = form if form in ENDINGS else "html"
    selected = _chosen_sessions(request, request.query.get("session", []))
    ids = {_key_of(session) for session in selected}
    conversations = [
        conversation
        for _, id in sorted(ids)
        for conversation in reversed(
            request.store.conversations(Filter(session=id, limit=NO_LIMIT))
        )
        if _key_of(conversation) in ids
    ]
    title = selected[0].title if len(selected) == 1 else ""
    head = ExportHead(now_milliseconds(), True, title, request.location)
    pieces = export(load(EXPORT_FORMATS[form]), conversations, request.store.entries, head)
    day = time.strftime("%Y-%m-%d", time.localtime(request.now))
    name = f"{counted(len(selected), 'session').replace(' ', '-')}-{day}.{ENDINGS[form]}"
    return name, MEDIA_TYPES[form], pieces


VIEWS = (
    View("all_sessions", "/sessions", _values, "Sessions", "a"),
    View("chosen", "/sessions/chosen", _chosen),
    View("lost", "/sessions/lost", _lost),
)
ACTIONS = (
    Action("/sessions/mark", _mark),
    Action("/sessions/archive", _archive),
    Action("/sessions/exclude", _exclude),
    Action("/sessions/forget", _forget),
)
DOWNLOADS = (Download("/sessions/export", _exported),)
