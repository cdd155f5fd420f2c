"""Labels, pins and seen rows: kept in the person's state, and gone with their session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from records import exchange
from store_scene import MONDAY, StoreUser

from session_memory.history.marks import Marks, MarksError, Seen, SessionMarks
from session_memory.sessions.settings.homes import Home, person_home

ONE, OTHER = ("", "s1"), ("garden", "s1")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return person_home({"HOME": str(tmp_path)})


def change(home: Home) -> Path:
    """Mark two sessions, and return the file of the marks."""
    with Marks.changing(home) as marks:
        marks.add_label([ONE, OTHER], "urgent")
        marks.pin([ONE], 7)
        marks.see("row", Seen(2_000_000_000, 5, ("s1",)))
    return Path(home.state_dir, "marks.json")


def test_marks_are_read_as_they_were_written(home: Home) -> None:
    file = change(home)
    marks = Marks.read(home)
    assert marks.of(ONE) == SessionMarks(("urgent",), 7)
    assert marks.of(OTHER) == SessionMarks(("urgent",), 0)
    assert marks.is_seen("row", 5)
    assert not marks.is_seen("row", 6)
    assert Marks.load(json.loads(json.dumps(marks.dump()))) == marks
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_session_without_labels_and_pin_has_no_marks(home: Home) -> None:
    change(home)
    with Marks.changing(home) as marks:
        marks.remove_label([ONE, OTHER], "urgent")
        marks.pin([ONE], 0)
    assert Marks.read(home).of_sessions == {}


def test_damaged_marks_are_none_and_their_file_is_kept_when_others_are_written(home: Home) -> None:
    file = change(home)
    file.write_text('{"version": 1, "sessions": []')
    assert Marks.read(home) == Marks()
    change(home)
    assert Marks.read(home).of(ONE).labels == ("urgent",)
    assert file.with_name("marks.json.corrupt").read_text() == '{"version": 1, "sessions": []'


def test_marks_of_a_newer_version_are_not_overwritten(home: Home) -> None:
    file = change(home)
    newer = '{"version": 2, "sessions": {}, "seen": {}}'
    file.write_text(newer)
    with pytest.raises(MarksError, match="newer version"):
        Marks.read(home)
    with pytest.raises(MarksError, match="newer version"):
        change(home)
    assert file.read_text() == newer


def test_a_label_is_one_short_line_without_secrets() -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    marks = Marks()
    for text in (f"see {token}", " to\n  do ", "x" * 500, " "):
        marks.add_label([ONE], text)
    redacted, to_do, long = marks.of(ONE).labels
    assert token not in redacted
    assert to_do == "to do"
    assert len(long) == 40


def test_damaged_marks_are_deleted_when_a_session_is_forgotten(home: Home) -> None:
    """They may still have the session's labels."""
    file = change(home)
    file.write_text('{"version": 1, "sessions": "urgent"')
    for name in ("marks.json.corrupt", "marks.json.corrupt-7"):
        file.with_name(name).write_text("urgent")
    Marks.forget(home, [ONE])
    kept = [path for path in file.parent.iterdir() if b"urgent" in path.read_bytes()]
    assert (kept, Marks.read(home)) == ([], Marks())
    assert not [path.name for path in file.parent.iterdir() if "corrupt" in path.name]


def test_a_session_that_continues_keeps_its_marks_when_an_old_part_is_forgotten(
    tmp_path: Path,
) -> None:
    owner = StoreUser(tmp_path)
    owner.session("s1", *exchange("old request", "Done.", at=MONDAY), *exchange("new", "Done."))
    owner.session("s2", *exchange("other old request", "Done.", at=MONDAY))
    owner.run("ingest")
    home = person_home({"HOME": str(tmp_path)})
    with Marks.changing(home) as marks:
        marks.add_label([("", "s1"), ("", "s2")], "urgent")
        marks.see("row", Seen(2_000_000_000, 5, ("s1",)))
    assert owner.run("forget", "--before", "2026-09-22", "--yes").returncode == 0
    assert list(Marks.read(home).of_sessions) == [("", "s1")]
    assert list(Marks.read(home).seen) == ["row"]


def test_the_marks_of_a_session_are_gone_after_it_was_forgotten(tmp_path: Path) -> None:
    owner = StoreUser(tmp_path)
    for name in ("s1", "s2"):
        owner.session(name, *exchange(f"request of {name}", "Done."))
    owner.run("ingest")
    home = person_home({"HOME": str(tmp_path)})
    with Marks.changing(home) as marks:
        marks.add_label([("", "s1"), ("", "s2")], "urgent")
        marks.see("row of both", Seen(2_000_000_000, 5, ("s1", "s2")))
        marks.see("row of s2", Seen(2_000_000_000, 5, ("s2",)))
    assert owner.run("forget", "s1", "--yes").returncode == 0
    marks = Marks.read(home)
    assert list(marks.of_sessions) == [("", "s2")]
    assert list(marks.seen) == ["row of s2"]


def test_labels_of_a_newer_version_do_not_keep_the_state_of_a_forgotten_session(
    tmp_path: Path,
) -> None:
    owner = StoreUser(tmp_path)
    owner.session("s1", *exchange("Bake the bread", "Baked."))
    owner.run("ingest")
    home = person_home({"HOME": str(tmp_path)})
    file = change(home)
    file.write_text('{"version": 9}')
    cursors = Path(home.cursor_file("s1"))
    cursors.parent.mkdir(parents=True, exist_ok=True)
    cursors.write_text("{}")
    done = owner.run("forget", "s1", "--yes")
    assert "a newer version wrote the labels and pins" in done.stderr
    assert not cursors.exists()
    assert file.read_text() == '{"version": 9}'


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"version": 9}', "a newer version wrote the labels and pins: update session-memory"),
        ("[1]", "marks.json is damaged"),
    ],
)
def test_marks_that_cannot_be_shown_come_with_the_problem(
    home: Home, content: str, problem: str
) -> None:
    assert Marks.readable(home) == (Marks(), "")
    change(home).write_text(content)
    marks, shown = Marks.readable(home)
    assert marks == Marks()
    assert problem in shown
