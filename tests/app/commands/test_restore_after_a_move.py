"""`session-memory restore` in a moved project restores to where the runtime looks now."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from git_scene import git, repository
from kept_scene import KeptUser, delete
from records import exchange

from session_memory.sessions.runtimes.table import runtime


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptUser:
    return KeptUser(tmp_path, monkeypatch)


def talk(person: KeptUser, directory: Path, within: str = "") -> Path:
    """Return the transcript of a session of Claude Code that began in a directory, with a result of
    a tool beside it."""
    folder = Path(folder_of(person, directory)).name
    records = exchange("one?", "Two.", cwd=f"{directory}{within}")
    path = person.talk("a", *records, days=1, project=folder)
    result = path.with_suffix("") / "tool-results" / "b.txt"
    result.parent.mkdir(parents=True)
    result.write_text("long")
    person.keep()
    return path


def folder_of(person: KeptUser, directory: Path) -> str:
    return runtime("agent-sdk").project_dir(str(person.home / ".claude"), str(directory))


@pytest.mark.parametrize("within", ["", "/src"])
def test_a_session_of_a_moved_project_is_restored_for_its_new_place(
    person: KeptUser, within: str
) -> None:
    old, new = repository(person.home / "w" / "old", src__a="1\n"), person.home / "v" / "new"
    path = talk(person, old, within)
    whole = path.read_bytes()
    delete(path)
    person.keep()
    new.parent.mkdir()
    old.rename(new)
    done = person.result("restore", "a", cwd=new)
    restored = Path(folder_of(person, new)) / "a.jsonl"
    result = restored.with_suffix("") / "tool-results" / "b.txt"
    assert done["written"] == [str(result), str(restored)]
    assert done["resume"] == f"cd {new}{within} && claude --resume a"
    assert (restored.read_bytes(), result.read_text()) == (whole, "long")
    assert not path.exists()


def test_a_session_of_a_project_that_was_cloned_anew_is_restored_there(person: KeptUser) -> None:
    old = repository(person.home / "old", a="1\n")
    path = talk(person, old)
    delete(path)
    person.keep()
    git(old, "clone", "-q", "--bare", str(old), "../upstream")
    shutil.rmtree(old)
    new = person.home / "new"
    git(person.home, "clone", "-q", "upstream", str(new))
    done = person.result("restore", "a", cwd=new)
    assert done["written"][-1] == f"{folder_of(person, new)}/a.jsonl"
    assert done["resume"] == f"cd {new} && claude --resume a"


def test_a_session_that_the_runtime_still_has_resumes_in_the_new_place(person: KeptUser) -> None:
    old, new = repository(person.home / "old", a="1\n"), person.home / "new"
    talk(person, old)
    old.rename(new)
    person.result("sessions", cwd=new)
    done = person.run("restore", "a")
    assert done.returncode == 1
    assert f"cd {new} && claude --resume a" in done.stderr


def test_nothing_is_overwritten_in_the_new_place(person: KeptUser) -> None:
    old, new = repository(person.home / "old", a="1\n"), person.home / "new"
    delete(talk(person, old))
    person.keep()
    old.rename(new)
    there = Path(folder_of(person, new)) / "a" / "tool-results" / "b.txt"
    there.parent.mkdir(parents=True)
    there.write_text("another")
    person.run("restore", "a", cwd=new)
    assert there.read_text() == "another"
    assert Path(folder_of(person, new), "a.jsonl").exists()
