"""The steps of an update, each called alone.

They are resolve, changed, entries, reports, collisions, selection and text.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from records import append, assistant, exchange, show_told, tool_result, user, write

from session_memory.awareness.activity import _new_entries
from session_memory.awareness.activity._forks import forked_before
from session_memory.awareness.activity._new_entries import NewEntries, read_own
from session_memory.awareness.activity.changes import Observation, OwnSession
from session_memory.awareness.activity.delivery import resolved, with_last
from session_memory.awareness.activity.report import Report, reports_of, summarize
from session_memory.awareness.activity.session_state import OwnState, SessionState
from session_memory.awareness.activity.update_text import Selection, text_of
from session_memory.awareness.activity.updates import (
    OLD_SECONDS,
    ReadNews,
    UpdateContext,
    _changed_since,
    _find_collisions,
    _read_news,
    _select,
    open_update,
)
from session_memory.sessions.runtimes.claude import RUNTIME as CLAUDE
from session_memory.sessions.runtimes.qwen import RUNTIME as QWEN
from session_memory.sessions.settings.compiled import Settings
from session_memory.sessions.transcripts.entries import Entry, Session, ToolUse

LIMIT = 500


class Scene:
    """A session and two others, in the project `app` below `root`."""

    def __init__(self, root: Path) -> None:
        self.now = time.time()
        self.app = root / "app"
        self.app.mkdir()
        self.own = write(root / "own.jsonl", *exchange("hello", "hi", cwd=str(self.app)))
        self.others = [
            write(root / f"{name}.jsonl", *exchange(f"ask {name}", "done", cwd=str(self.app)))
            for name in ("discord", "email")
        ]
        self.state_file = str(root / "state.json")

    def context(self, state: SessionState | None = None) -> UpdateContext:
        own = OwnSession("own", CLAUDE, self.state_file, str(self.own), str(self.app))
        sessions = [Session(path.stem, str(path), path.stem) for path in self.others]
        observed = Observation(own, sessions, Settings({}))
        return UpdateContext(observed, state or SessionState(), self.now, LIMIT)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def state_after(seconds_ago: float, scene: Scene) -> SessionState:
    """Return the state of a session that had its last prompt so long ago."""
    own = OwnState()
    own.asked = scene.now - seconds_ago
    return SessionState(own_state=own)


def news_of(name: str, *entries: Entry, request: str = "") -> tuple[Report, NewEntries]:
    session = Session(name, f"/nowhere/{name}.jsonl", name)
    spoken = Entry("user", request or f"ask {name}", timestamp=1.0, id=f"{name}-0")
    new = NewEntries(session, CLAUDE)
    new.entries = [spoken, *entries]
    new.is_read = True
    summary = summarize(new.entries)
    assert summary is not None
    report = Report(name, summary, last_active=summary.last_timestamp or 0.0)
    report.entries = new.entries
    return report, new


def edit_of(path: str, at: float) -> Entry:
    return Entry("assistant", "", timestamp=at, id=path, tools=(ToolUse("Edit", path, "edit"),))


def test_a_first_prompt_reads_its_own_transcript_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = []
    read_back = _new_entries._Reader.read_back

    def noted(reader: _new_entries._Reader, *inputs: Any, **options: Any) -> list[Entry]:
        paths.append(reader._new.session.path)
        return read_back(reader, *inputs, **options)

    monkeypatch.setattr(_new_entries._Reader, "read_back", noted)
    copied = scene.own.read_bytes()
    fork = scene.own.with_name("discord.jsonl")
    fork.write_bytes(copied + fork.read_bytes())
    with open_update(scene.context().observed, now=scene.now, limit=LIMIT) as delivery:
        text = delivery.text
    assert "ask discord" in text
    assert "hello" not in text
    assert paths.count(str(scene.own)) == 1


def test_a_fork_is_known_by_copies_far_before_its_end(scene: Scene) -> None:
    def line(number: int, role: str, kind: str, **more: object) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(scene.now - 2000 + number))
        message = {"role": role, "parts": [{"text": f"{number} " + "word " * 2000}]}
        record = {"uuid": f"u{number}", "parentUuid": None, "sessionId": "own", "timestamp": at}
        return json.dumps({**record, "type": kind, "cwd": "/app", **more, "message": message})

    copied = line(0, "user", "user", forkedFrom={"sessionId": "other"})
    own = [
        line(number, *(("user", "user"), ("model", "assistant"))[number % 2])
        for number in range(1, 120)
    ]
    scene.own.write_text("\n".join([copied, *own, ""]))
    reader = OwnSession("own", QWEN, scene.state_file, str(scene.own), str(scene.app))
    read = read_own(reader, None, scene.now, scene.now - 9000)
    assert read.is_partial
    assert not any(entry.is_copy for entry in read.parsed)
    since, ids = forked_before(read, scene.now - 9000, scene.now)
    assert since == pytest.approx(scene.now - 1999, abs=1)
    assert ids == {f"u{number}" for number in range(120)}


def test_resolve_moves_the_cursors_only_if_the_transcript_shows_the_last_update(
    scene: Scene,
) -> None:
    own = scene.context().reader
    moved, text = state_after(0, scene), "[Session Activity]\n- one"
    before = with_last(SessionState(), moved, text, own, scene.now)
    content = scene.own.read_bytes()
    append(scene.own, *exchange("go on", "ok"))
    lost = resolved(before, own)
    scene.own.write_bytes(content)
    show_told(scene.own, json.dumps(CLAUDE.context_output(text)).encode())
    arrived = resolved(before, own)
    assert lost is not None
    assert arrived is not None
    assert lost.own is None
    assert arrived.own is moved.own


def test_changed_are_the_sessions_written_since_the_last_prompt_and_those_that_wait(
    scene: Scene,
) -> None:
    old = scene.now - 3 * OLD_SECONDS
    os.utime(scene.others[0], (old, old))
    state = state_after(60, scene)
    assert [session.key for session, _ in _changed_since(scene.context(state))] == ["email"]
    assert state.own is not None
    state.own.pending = {"discord": 1}
    state.own.asked = 0.0
    waiting = scene.context(state)
    waiting.seen = scene.now - 60
    assert {session.key for session, _ in _changed_since(waiting)} == {"discord", "email"}


def test_entries_are_read_behind_the_cursors_and_old_sessions_are_left_out(scene: Scene) -> None:
    old = scene.now - OLD_SECONDS - 60
    os.utime(scene.others[0], (old, old))
    context = scene.context(state_after(30, scene))
    changed = [(session, os.stat(session.path)) for session in context.observed.sessions]
    news = _read_news(context, changed)
    assert [new.session.key for new in news.read] == ["email"]
    assert [entry.text for entry in news.read[0].entries] == ["ask email", "done"]
    assert (news.left_out, news.further, news.pending) == (["discord"], 0, {})


def test_a_report_says_what_a_session_did_and_none_is_made_of_nothing(scene: Scene) -> None:
    context = scene.context()
    _, busy = news_of("discord", edit_of("/app/cart.py", 5.0))
    silent = NewEntries(Session("email", "/nowhere/email.jsonl", "email"), CLAUDE)
    reports = reports_of([busy, silent], context.reader, Settings({}), scene.now)
    (report, _), (nothing, _) = reports
    assert report is not None
    assert report.summary.edited_files == ("/app/cart.py",)
    assert nothing is None


def test_collisions_are_lines_about_edits_of_files_in_hand(scene: Scene) -> None:
    (scene.app / "cart.py").write_text("1\n")
    read = ("Read", {"file_path": str(scene.app / "cart.py")})
    append(scene.own, assistant(read), tool_result(), user("go on"))
    scene.now += 60
    edited = news_of("discord", edit_of(str(scene.app / "cart.py"), scene.now - 30))
    os.utime(scene.app / "cart.py", (scene.now - 30, scene.now - 30))
    found = _find_collisions(scene.context(state_after(0, scene)), [edited], {})
    assert [line.partition(" edited ")[0] for line in found.lines] == ["! cart.py:"]
    assert found.pending == {}

    postponed = _find_collisions(scene.context(), [edited], {"discord": 1})
    assert postponed.reports == []


def test_the_selection_puts_files_that_the_prompt_names_first_and_counts_the_rest(
    scene: Scene,
) -> None:
    context = scene.context()
    context.reader.prompt = "why is cart.py so slow?"
    now = scene.now
    reports = [
        news_of("discord", edit_of("/app/cart.py", now - 50)),
        *[news_of(f"busy-{n}", edit_of(f"/app/{n}.py", now - n)) for n in range(3)],
    ]
    chosen = _select(context, reports, ReadNews())
    assert [report.name for report in chosen.selection.reports] == ["discord", "busy-0", "busy-1"]
    assert chosen.selection.further == 1
    left = {new.session.key for new in chosen.reported(1)}
    assert left == {"discord"}


def test_the_text_has_the_lines_that_fit_and_counts_the_others(scene: Scene) -> None:
    reports = [news_of(name, request="x" * 90)[0] for name in ("discord", "email")]
    text, shown = text_of(Selection(reports, 2), 61.0, 150, ["! cart.py: edited by email"])
    assert (shown, text.splitlines()[0]) == (1, "[Session Activity]")
    assert text.splitlines()[1] == "! cart.py: edited by email"
    assert text.endswith("\n+3 more")
    assert len(text) <= 150
