"""Kept state: random states survive a round trip, in the form that 0.4.2 wrote and reads."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from session_memory.awareness.activity.actions import EDIT, READ, FileAction
from session_memory.awareness.activity.collisions._working_set import CollisionState
from session_memory.awareness.activity.conflicts import KeptConflict
from session_memory.awareness.activity.inbox import Inbox
from session_memory.awareness.activity.session_state import (
    InjectedMemories,
    LastDelivery,
    OwnState,
    SessionState,
    _are_cursors,
)
from session_memory.sessions.transcripts.read_cursor import ReadCursor, ReadCursors

NUMBERS = st.integers(0, 2**40)
TIMES = st.floats(0, 4e9)
TEXTS = st.text(max_size=8)
KEYS = st.text("abcdef-", min_size=1, max_size=8)
OWN = "own"


@st.composite
def read_cursors(draw: st.DrawFn) -> ReadCursor:
    cursor = ReadCursor(draw(NUMBERS), draw(NUMBERS), draw(NUMBERS), draw(st.none() | NUMBERS))
    cursor.size, cursor.mtime, cursor.sub_agents = draw(NUMBERS), draw(NUMBERS), draw(NUMBERS)
    cursor.seen, cursor.ids = draw(TIMES), draw(st.lists(NUMBERS, max_size=4))
    low = draw(NUMBERS)
    cursor.unread = [(low, low + draw(NUMBERS), since) for since in draw(st.lists(TIMES))]
    cursor.title = draw(st.none() | st.tuples(st.integers(0, 3), TEXTS))
    cursor.titled, cursor.first = draw(st.none() | NUMBERS), draw(st.none() | TEXTS)
    cursor.start, cursor.own_title = draw(st.none() | TEXTS), draw(st.none() | TEXTS)
    cursor.compacted, cursor.kin = draw(st.booleans()), draw(st.none() | st.lists(TEXTS))
    return cursor


@st.composite
def own_states(draw: st.DrawFn) -> OwnState:
    own = OwnState()
    cursor = draw(st.none() | read_cursors())
    own.cursor = cursor if cursor is not None and cursor.tail is not None else None
    own.directory, own.git_dir, own.branch = draw(st.none() | TEXTS), draw(TEXTS), draw(TEXTS)
    own.stamp, own.inbox = draw(st.lists(NUMBERS)), draw(st.lists(NUMBERS))
    own.updated, own.asked, own.has_open_calls = draw(TIMES), draw(TIMES), draw(st.booleans())
    own.left_out, own.notes_told = draw(st.lists(TEXTS)), draw(st.lists(TEXTS))
    own.pending = draw(st.dictionaries(KEYS, st.integers(0, 9)))
    return own


@st.composite
def session_states(draw: st.DrawFn, *, is_after: bool = False) -> SessionState:
    cursors = draw(st.dictionaries(KEYS.filter(lambda key: key != OWN), read_cursors(), max_size=3))
    state = SessionState(ReadCursors(cursors), draw(st.none() | own_states()))
    state.collisions = draw(st.none() | TEXTS)
    if not is_after:
        memories = draw(st.none() | st.lists(TEXTS))
        state.memories = None if memories is None else InjectedMemories(memories)
        if draw(st.booleans()):
            last = LastDelivery(draw(NUMBERS), draw(KEYS), draw(NUMBERS), draw(TIMES), 2)
            last.prompt, last.process = draw(TEXTS), draw(TEXTS)
            last.after = draw(st.none() | session_states(is_after=True))
            last.acknowledged = draw(st.none() | st.booleans())
            state.last = last
    return state


@given(session_states())
def test_a_session_state_survives_a_round_trip(state: SessionState) -> None:
    kept = json.loads(json.dumps(state.dump(OWN)))
    loaded = SessionState.load(json.loads(json.dumps(kept)), OWN)
    for _ in loaded.cursors.items():  # each is loaded as it is asked for
        pass
    assert loaded.dump(OWN) == kept
    assert loaded.own is None or state.own is not None
    assert _are_cursors(kept)


@given(session_states())
def test_a_state_without_versions_is_read_as_0_4_2_wrote_it(state: SessionState) -> None:
    kept = json.loads(json.dumps(state.dump(OWN)))
    former = json.loads(json.dumps(kept), object_hook=without_version)
    loaded = SessionState.load(former, OWN)
    for part in (loaded, loaded.last and loaded.last.after):
        for _ in part.cursors.items() if part else ():
            pass
    assert loaded.dump(OWN) == kept


def without_version(value: dict[str, object]) -> dict[str, object]:
    return {key: part for key, part in value.items() if key != "version"}


@given(read_cursors())
def test_a_cursor_of_a_later_version_counts_as_none(cursor: ReadCursor) -> None:
    assert ReadCursor.load(json.loads(json.dumps(cursor.dump()))) == cursor
    assert ReadCursor.load({**cursor.dump(), "version": ReadCursor.VERSION + 1}) is None


def test_a_working_set_survives_a_round_trip() -> None:
    state = CollisionState(5.0)
    edit = FileAction(EDIT, "/srv/app.py", (7.5, 100, "call"), is_command=True, words=("sed",))
    edit.copy, edit.worktree, edit.is_doubtful = "/srv/other/app.py", "other", False
    state.working_set.add([FileAction(READ, "/srv/app.py", (6.5, 50, "first")), edit])
    state.reported = {"edited a /srv/app.py": 7.5}
    state.open_actions = {"a": [edit]}
    state.sub_agents = {"/srv/a.jsonl": 12}
    loaded = CollisionState.load(state.dump(), 5.0)
    assert loaded.dump() == state.dump()
    (_, loaded_edit), (_, kept_edit) = (
        one.working_set.actions["/srv/app.py"] for one in (loaded, state)
    )
    assert loaded_edit.dump() == kept_edit.dump()
    assert CollisionState.load("no state", 5.0).dump() == CollisionState(5.0).dump()


@st.composite
def conflicts(draw: st.DrawFn) -> KeptConflict:
    spans = st.tuples(*[st.tuples(NUMBERS, NUMBERS)] * 2)
    return KeptConflict(
        draw(TEXTS),
        draw(TIMES),
        file=draw(TEXTS),
        root=draw(TEXTS),
        lines=draw(spans),
        hunks=draw(st.lists(spans, max_size=2)),
        deleted_by=draw(st.none() | st.integers(0, 1)),
        commits=draw(st.integers(0, 3)),
        is_certain=draw(st.booleans()),
        sessions=draw(st.lists(TEXTS, max_size=2)),
        key=draw(KEYS),
    )


@given(st.lists(conflicts(), max_size=3), st.lists(st.tuples(TEXTS, NUMBERS), max_size=2), NUMBERS)
def test_an_inbox_survives_a_round_trip_in_a_form_that_0_4_2_reads(
    notes: list[KeptConflict], rules: list[tuple[str, object]], judged: int
) -> None:
    inbox = Inbox()
    inbox.replace(KeptConflict.KIND, notes)
    inbox.rules, inbox.judged = rules, judged
    kept = json.loads(json.dumps(inbox.dump()))
    loaded = Inbox.load(json.loads(json.dumps(kept)))
    assert json.loads(json.dumps(loaded.dump())) == kept
    again = [KeptConflict.load(dumped) for dumped in loaded.dumps.get(KeptConflict.KIND, ())]
    assert json.loads(json.dumps([note.dump() for note in again])) == kept["conflicts"]
    assert {"rules", "conflicts"} <= kept.keys()  # which 0.4.2 takes for granted
    former = {"rules": kept["rules"], "conflicts": kept["conflicts"]}
    assert json.loads(json.dumps(Inbox.load(former).dump()))["conflicts"] == kept["conflicts"]
