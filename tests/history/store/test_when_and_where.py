"""When and where conversations took place."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from store_scene import EVERYTHING, MINUTE, START, Scene, put, said, state

from session_memory.history.store.sqlite.tool_uses import (
    WorkHour,
    WorkPlace,
    work_hours,
    work_places,
)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def at(minute: int) -> tuple[str, int]:
    moment = datetime.fromtimestamp(START / 1000 + 60 * minute)
    return moment.strftime("%Y-%m-%d"), moment.hour


def test_each_hour_has_the_conversations_that_began_in_it_with_their_messages(scene):
    put(scene, None, state("a"), said("a"), said("b", 1), said("c", 24 * 60))
    put(scene, None, state("b"), said("d"), said("e", timestamp=None))
    put(scene, None, state("c"), said("never", timestamp=None))
    assert work_hours(scene.store, EVERYTHING) == [
        WorkHour(*at(0), 2, 4),
        WorkHour(*at(24 * 60), 1, 1),
    ]
    assert work_hours(scene.store, EVERYTHING._replace(since=START + 60 * MINUTE)) == [
        WorkHour(*at(24 * 60), 1, 1)
    ]
    assert work_hours(scene.store, EVERYTHING._replace(session="c")) == []


def test_hours_are_those_of_the_local_clock(scene, set_zone):
    put(scene, None, state("a"), *[said(str(hour), 70 * hour) for hour in range(48)])
    for zone in ("UTC", "Asia/Kathmandu", "America/New_York"):
        set_zone(zone)
        found = [(one.day, one.hour) for one in work_hours(scene.store, EVERYTHING)]
        assert found == sorted({at(70 * hour) for hour in range(48)}), zone


def test_each_directory_has_the_sessions_of_each_runtime_that_were_started_in_it(scene):
    put(scene, None, state("a", last_entry_timestamp=START), said("a"), said("b", 300))
    put(scene, None, state("b", last_entry_timestamp=START + MINUTE), said("c"))
    put(scene, None, state("c", source="pi", cwd="/srv/rolls", home="red"), said("d"))
    put(scene, None, state("empty", cwd="/srv/empty"))
    assert work_places(scene.store) == [
        WorkPlace("/srv/agent", "claude-code", 2, START + MINUTE),
        WorkPlace("/srv/rolls", "pi", 1, None),
    ]
    with scene.seen_by("red"):
        assert work_places(scene.store) == [WorkPlace("/srv/rolls", "pi", 1, None)]
