"""A session that lived through the upgrade from 0.2.0 loses no cursor, and repeats nothing."""

from __future__ import annotations

import json
import os
import time

import pytest
from git_scene import repository
from hooks_scene import told
from records import append, assistant, exchange, new_id, user, write

from session_memory.activity.actions import FileAction
from session_memory.activity.collisions.working_set import CollisionState
from session_memory.activity.state import COLLISIONS, LAST, MEMORIES, KnownState, StateFile, forget_memories

OLD_SUFFIXES = (".collisions", ".collisions.last", ".told", ".standstill", ".touched", ".edited")


def working_set(path):
    state = CollisionState("", 0.0)
    state.working_set.add([FileAction("edit", path, (1.0, 0, "call"))])
    return state.content()


@pytest.fixture
def old(tmp_path):
    """The state that 0.2.0 kept of a session, in its files."""
    path = tmp_path / "main.json"
    last = {"offset": 5, "cursors": {"discord": {"offset": 9}}, "collisions": True}
    path.write_text(json.dumps({"main": {"discord": {"offset": 7}, " last": last}}))
    for suffix in OLD_SUFFIXES:
        path.with_suffix(suffix).write_text("x")
    path.with_suffix(".collisions").write_text(working_set("/srv/app.py"))
    path.with_suffix(".collisions.last").write_text(working_set("/srv/db.py"))
    path.with_suffix(".told").write_text("m1\nm2\n")
    return path


def paths(content):
    return list(CollisionState(content, 0.0).working_set.actions)


def test_it_is_read_with_the_files_beside_it(old):
    state = KnownState(str(old)).of("main")
    assert state["discord"] == {"offset": 7}
    assert paths(state[COLLISIONS]) == ["/srv/app.py"]
    assert state[MEMORIES] == ["m1", "m2"]
    assert state[LAST]["cursors"]["discord"] == {"offset": 9}
    assert paths(state[LAST]["cursors"][COLLISIONS]) == ["/srv/db.py"]


def test_the_files_are_deleted_once_their_content_is_kept(old):
    file = StateFile(str(old))
    file.of("main")
    file.prepare()
    assert old.with_suffix(".told").exists()
    file.commit()
    file.close()
    assert sorted(path.name for path in old.parent.iterdir()) == ["main.json", "main.json.lock"]
    assert paths(KnownState(str(old)).of("main")[COLLISIONS]) == ["/srv/app.py"]


def test_files_of_somebody_else_beside_a_cursor_file_are_left_alone(old):
    state = KnownState(str(old)).of("main", with_old=False)
    assert COLLISIONS not in state
    assert {path.suffix for path in old.parent.iterdir()} >= {".told", ".edited"}


def test_a_compaction_forgets_the_memories_of_before(old):
    forget_memories(str(old), "main")
    state = KnownState(str(old)).of("main")
    assert MEMORIES not in state
    assert state["discord"] == {"offset": 7}


def test_a_session_with_files_of_0_2_0_repeats_no_update_and_no_collision(plain, tmp_path):
    app = repository(tmp_path / "app", src="x = 1\n")
    path, directory = str(app / "src"), str(app)
    own = plain.project_dir / f"{plain.session_id}.jsonl"
    write(
        own,
        user("edit it", cwd=directory),
        assistant(("Edit", {"file_path": path}), cwd=directory, at=time.time() - 60),
    )
    other = write(plain.project_dir / f"{new_id()}.jsonl", *exchange("hello", "hi", cwd=directory))
    append(other, assistant(("Edit", {"file_path": path}), cwd=directory, at=time.time() - 30))
    os.utime(path, (time.time() - 29, time.time() - 29))
    first = told(plain.run(cwd=directory))
    assert "hello" in first
    as_0_2_0(plain.state_dir / "cursors" / f"{plain.session_id}.json", plain.session_id)
    assert plain.run(cwd=directory) == b""
    append(other, *exchange("more", "done", cwd=directory))
    text = told(plain.run(cwd=directory))
    assert "more" in text
    assert "2 messages" in text  # not the two of before
    assert "! " not in text
    assert plain.log() == []
    assert {one.suffix for one in (plain.state_dir / "cursors").iterdir()} == {".json", ".lock"}


def as_0_2_0(path, session_id):
    """Splits the state of a session as 0.2.0 kept it."""
    content = json.loads(path.read_text())
    content.pop(" standstill", None)
    own = content[session_id]
    pending = own.get(LAST, {}).get("cursors")
    if pending is not None:
        kept = pending.pop(COLLISIONS, None)
        own[LAST]["collisions"] = kept is not None
        if kept is not None:
            path.with_suffix(".collisions.last").write_text(kept)
    path.with_suffix(".collisions").write_text(own.pop(COLLISIONS, ""))
    path.with_suffix(".standstill").write_text("/srv\n[]\n")
    path.write_text(json.dumps(content))
