"""The index of a project and the state beside mirrors survive a round trip.

Their form is the one that 0.4.2 wrote and reads.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_memory.sessions.transcripts.mirror import MirrorState
from session_memory.sessions.transcripts.projects import ProjectIndex

PATHS = st.text("abc/.", min_size=1, max_size=9)
NUMBERS = st.integers(0, 2**60)
STAMPS = st.lists(NUMBERS, max_size=3)
STAMPED = st.lists(st.tuples(PATHS, STAMPS), max_size=3)
TEXTS = st.text(max_size=9)


@st.composite
def mirror_states(draw: st.DrawFn) -> MirrorState:
    state = MirrorState()
    state.copied, state.read = (draw(st.dictionaries(PATHS, STAMPS, max_size=3)) for _ in range(2))
    state.gone, state.going_on = (draw(st.lists(PATHS, max_size=3)) for _ in range(2))
    state.is_whole, state.sessions = draw(st.booleans()), draw(st.just("") | PATHS)
    state.row = draw(st.just([]) | st.tuples(NUMBERS, TEXTS).map(list))
    state.rules, state.watched = draw(st.lists(STAMPS, max_size=2)), draw(STAMPED)
    state.unread = draw(st.dictionaries(PATHS, st.tuples(STAMPS, TEXTS), max_size=3))
    return state


@st.composite
def indexes(draw: st.DrawFn) -> ProjectIndex:
    index = ProjectIndex(draw(PATHS), draw(PATHS))
    index.places = draw(st.dictionaries(TEXTS, PATHS, max_size=3))
    index.stamps = draw(STAMPED)
    folders = st.lists(st.tuples(PATHS, TEXTS), max_size=3)
    index.folders = draw(st.dictionaries(TEXTS, folders, max_size=3))
    starts = PATHS | st.lists(TEXTS, min_size=1, max_size=1)
    index.directories = draw(st.dictionaries(PATHS, starts, max_size=3))
    index.sub_agents = draw(st.dictionaries(TEXTS, st.lists(PATHS, max_size=2), max_size=3))
    return index


def stored(dump: dict[str, object]) -> dict[str, object]:
    read: dict[str, object] = json.loads(json.dumps(dump))
    return read


@given(mirror_states() | indexes())
def test_a_state_survives_a_round_trip_with_and_without_a_version(
    state: MirrorState | ProjectIndex,
) -> None:
    kept = stored(state.dump())
    former = {name: part for name, part in kept.items() if name != "version"}
    for form in (kept, former):
        assert stored(type(state).load(form).dump()) == kept


@given(mirror_states() | indexes(), st.data())
def test_a_part_of_another_type_counts_as_empty_and_leaves_the_others(
    state: MirrorState | ProjectIndex, data: st.DataObject
) -> None:
    kept = stored(state.dump())
    name = data.draw(st.sampled_from(state.__slots__))
    loaded = type(state).load({**kept, name: 7.5})
    assert getattr(loaded, name) == getattr(type(state)(), name)
    others = [each for each in state.__slots__ if each != name]
    assert stored({each: getattr(loaded, each) for each in others}) == stored(
        {each: getattr(state, each) for each in others}
    )


@pytest.mark.parametrize("kind", [MirrorState, ProjectIndex])
def test_the_state_of_a_later_version_counts_as_none(
    kind: type[MirrorState] | type[ProjectIndex],
) -> None:
    later = {"version": kind.VERSION + 1, "start": "/srv", "sessions": "/srv"}
    assert kind.load(later).dump() == kind().dump()


@pytest.mark.parametrize("row", [[], [1], ["1", "a"], [1, "a", 2]])
def test_a_row_of_another_form_is_unknown(row: list[object]) -> None:
    state = MirrorState()
    state.row = row
    assert state.last_message == (0, "")


def test_a_state_without_the_signs_of_completeness_keeps_the_rest() -> None:
    state = MirrorState()
    state.copied, state.read, state.is_whole = {"a.jsonl": [1]}, {"b": [2]}, True
    state.watched, state.row, state.gone = [("c", [3])], [4, "d"], ["e.jsonl"]
    assert state.incomplete().dump() == {
        "version": 1,
        "copied": {"a.jsonl": [1]},
        "gone": ["e.jsonl"],
    }
    assert state.is_known
    assert not MirrorState().is_known
