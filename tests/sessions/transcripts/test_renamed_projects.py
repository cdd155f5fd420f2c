"""A repository that was moved or renamed keeps its sessions; no other repository gets them."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from git_scene import git, repository
from hooks_scene import run as run_hook
from records import append, exchange, new_id
from store_scene import StoreUser

from session_memory.app.labels import project_of
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.values import Filter
from session_memory.sessions.runtimes.table import runtime

CLAUDE = runtime("agent-sdk")


class Person(StoreUser):
    """Has sessions of Claude Code in directories of `w`, which the store has read."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.work = home / "w"

    def talk(self, directory: Path, text: str, *, folder: Path | None = None, id: str = "") -> str:
        """Return the id of a session in a directory, whose transcript is in the folder for
        `folder`."""
        id = id or new_id()
        path = Path(
            CLAUDE.project_dir(str(self.home / ".claude"), str(folder or directory)), f"{id}.jsonl"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        append(
            path, *exchange(text, "Done.", sessionId=id, cwd=str(directory), at=time.time() - 60)
        )
        assert self.run("ingest").returncode == 0
        return id

    def listed(self, directory: Path) -> set[str]:
        done = self.run("sessions", cwd=directory)
        if "no session yet" in done.stdout:
            return set()
        return {session["id"] for session in self.result("sessions", cwd=directory)["sessions"]}

    def found(self, words: str, directory: Path) -> set[str]:
        done = self.run("search", words, "--project", ".", cwd=directory)
        if done.returncode:
            return set()
        hits = self.result("search", words, "--project", ".", cwd=directory)["hits"]
        return {hit["conversation"]["session_id"] for hit in hits}

    def prompt(self, directory: Path) -> str:
        id = new_id()
        folder = CLAUDE.project_dir(str(self.home / ".claude"), str(directory))
        event = {
            "session_id": id,
            "hook_event_name": "UserPromptSubmit",
            "prompt": "go on",
            "transcript_path": f"{folder}/{id}.jsonl",
            "cwd": str(directory),
        }
        return run_hook(event, self.home).decode()

    def knows(self, directory: Path, id: str) -> tuple[bool, bool, bool]:
        """Return whether a directory's list, search and prompt know of a session about
        marigolds."""
        told = "marigold" in self.prompt(directory)
        return id in self.listed(directory), id in self.found("marigold", directory), told


ALL, NONE = (True, True, True), (False, False, False)


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def cloned(upstream: Path, root: Path, origin: str = "") -> Path:
    git(upstream, "clone", "-q", str(upstream), str(root))
    if origin:
        git(root, "remote", "set-url", "origin", origin)
    return root


@pytest.mark.parametrize("has_template", [True, False])
def test_a_renamed_repository_keeps_its_sessions(person: Person, has_template: bool) -> None:
    project = repository(person.work / "proj", a="1\n")
    if has_template:
        git(project, "init", "-q")
        assert (project / ".git" / "description").exists()
    id = person.talk(project, "grow the marigold")
    assert person.knows(project, id) == ALL
    renamed = project.rename(person.work / "renamed")
    assert person.knows(renamed, id) == ALL


def test_sessions_in_a_subdirectory_follow_a_repository_through_two_moves(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = repository(person.work / "proj", src__a="1\n")
    ids = {person.talk(project / "src", "grow the marigold")}
    moved = project.rename(person.work / "moved")
    ids.add(person.talk(moved, "water the marigold"))
    person.work.rename(person.home / "v")
    again = person.home / "v" / "moved"
    assert person.listed(again) == person.found("marigold", again) == ids
    monkeypatch.setenv("HOME", str(person.home))
    # the page learns of the new path with the first session there
    person.talk(again, "pick the marigold")
    assert project_of(str(project / "src")) == "moved"


def test_a_linked_worktree_sees_the_sessions_from_before_the_move(person: Person) -> None:
    project = repository(person.work / "proj", a="1\n")
    id = person.talk(project, "grow the marigold")
    renamed = project.rename(person.work / "renamed")
    git(renamed, "worktree", "add", "-q", "../side")
    assert person.knows(person.work / "side", id) == ALL
    assert ", in worktree renamed (" in person.prompt(person.work / "side")


@pytest.mark.parametrize("origin", ["", "git@example.com:acme/shop.git"])
@pytest.mark.parametrize("is_told_first", [True, False])
def test_a_new_clone_gets_the_sessions_of_one_that_is_gone(
    person: Person, is_told_first: bool, origin: str
) -> None:
    upstream = repository(person.home / "upstream", a="1\n")
    first, second = person.work / "first", person.home / "v" / "second"
    cloned(upstream, first, origin)
    id = person.talk(first / "src", "grow the marigold")
    shutil.rmtree(first)
    cloned(upstream, second, origin and "https://ann@example.com/acme/shop")
    if is_told_first:
        assert "marigold" in person.prompt(second)
    assert person.knows(second, id) == ALL
    third = second.rename(person.work / "third")
    assert person.knows(third, id) == ALL


def test_a_clone_does_not_get_the_sessions_of_one_that_was_there_at_the_same_time(
    person: Person,
) -> None:
    upstream = repository(person.home / "upstream", a="1\n")
    first, second = person.work / "first", person.work / "second"
    cloned(upstream, first)
    id = person.talk(first, "grow the marigold")
    cloned(upstream, second)
    assert person.knows(second, id) == NONE
    shutil.rmtree(first)
    assert person.knows(second, id) == NONE
    other = person.talk(second, "plant the orchard")
    shutil.rmtree(second)
    third, fourth = cloned(upstream, person.work / "third"), person.work / "fourth"
    assert person.listed(third) == {id, other}
    cloned(upstream, fourth)
    assert person.listed(fourth) == set()


@pytest.mark.parametrize(
    ("origin", "other_origin", "is_same_history"),
    [
        ("https://example.com/acme/shop", "https://example.com/mallory/shop", True),
        ("https://example.com/acme/shop", "https://example.com/acme/shop", False),
        ("https://example.com/acme/shop", "", True),
        ("", "", False),
    ],
)
def test_a_repository_needs_both_the_origin_and_the_history_of_one_that_is_gone(
    person: Person, origin: str, other_origin: str, is_same_history: bool
) -> None:
    upstream = repository(person.home / "upstream", a="1\n")
    first = cloned(upstream, person.work / "first", origin)
    id = person.talk(first, "grow the marigold")
    shutil.rmtree(first)
    if not is_same_history:
        upstream = repository(person.home / "other", b="2\n")
    second = cloned(upstream, person.work / "second", other_origin)
    assert person.knows(second, id) == NONE


def test_a_copy_is_another_project_until_the_original_is_gone(person: Person) -> None:
    project = repository(person.work / "proj", a="1\n")
    id = person.talk(project, "grow the marigold")
    shutil.copytree(project, person.work / "early")
    assert person.knows(person.work / "early", id) == NONE
    shutil.copytree(project, person.work / "late")
    shutil.rmtree(project)
    assert person.knows(person.work / "early", id) == NONE
    assert person.knows(person.work / "late", id) == ALL


def test_a_clone_in_place_of_another_one_keeps_the_earlier_paths(person: Person) -> None:
    upstream = repository(person.home / "upstream", a="1\n")
    first = cloned(upstream, person.work / "first")
    ids = {person.talk(first, "grow the marigold")}
    second = first.rename(person.work / "second")
    ids.add(person.talk(second, "water the marigold"))
    shutil.rmtree(second)
    cloned(upstream, second)
    ids.add(person.talk(second, "pick the marigold"))
    assert person.listed(second) == ids
    third = second.rename(person.work / "third")
    assert person.listed(third) == person.found("marigold", third) == ids


def test_a_shallow_clone_continues_none(person: Person) -> None:
    upstream = repository(person.home / "upstream", a="1\n")
    git(upstream, "commit", "-q", "--allow-empty", "-m", "more")
    first, second = person.work / "first", person.work / "second"
    cloned(upstream, first)
    id = person.talk(first, "grow the marigold")
    shutil.rmtree(first)
    git(upstream, "clone", "-q", "--depth=1", f"file://{upstream}", str(second))
    assert person.knows(second, id) == NONE
    other = person.talk(second, "plant the orchard")
    third = second.rename(person.work / "third")
    assert person.listed(third) == {other}


def test_a_moved_worktree_keeps_its_sessions(person: Person) -> None:
    project = repository(person.work / "proj", a="1\n")
    git(project, "worktree", "add", "-q", "../side")
    side, moved = person.work / "side", person.home / "v" / "moved"
    id = person.talk(side, "grow the marigold")
    moved.parent.mkdir()
    git(project, "worktree", "move", str(side), str(moved))
    assert person.knows(moved, id) == ALL
    assert person.knows(project, id) == ALL
    assert ", in worktree " not in person.prompt(moved)
    assert ", in worktree side (" in person.prompt(project)


def test_the_sessions_of_a_removed_worktree_stay_with_their_project(person: Person) -> None:
    project = repository(person.work / "proj", a="1\n")
    git(project, "worktree", "add", "-q", "../side")
    id = person.talk(person.work / "side", "grow the marigold")
    git(project, "worktree", "remove", "--force", "../side")
    assert person.knows(project, id) == ALL
    assert ", in worktree side (" in person.prompt(project)


def test_rules_about_the_old_path_still_apply_after_a_move(person: Person) -> None:
    upstream = repository(person.home / "upstream", a="1\n")
    first, second = person.work / "first", person.work / "second"
    cloned(upstream, first)
    id = person.talk(first, "grow the marigold")
    assert person.run("config", f"projects.{first}.ignore", "true").returncode == 0
    shutil.rmtree(first)
    cloned(upstream, second)
    assert person.knows(second, id) == NONE


def test_a_new_repository_at_the_old_path_has_its_own_sessions(person: Person) -> None:
    project = repository(person.work / "proj", a="1\n")
    person.talk(project, "plant the orchard")
    renamed = project.rename(person.work / "renamed")
    assert "orchard" in person.prompt(renamed)
    repository(project, b="2\n")
    id = person.talk(project, "grow the marigold")
    assert person.knows(renamed, id) == NONE
    assert person.knows(project, id) == ALL


def test_a_path_where_two_repositories_were_is_the_earlier_path_of_neither(person: Person) -> None:
    project = repository(person.work / "proj", a="1\n")
    person.talk(project, "plant the orchard")
    renamed = project.rename(person.work / "renamed")
    repository(project, b="2\n")
    id = person.talk(project, "grow the marigold")
    other = project.rename(person.work / "other")
    assert person.knows(renamed, id) == NONE
    assert person.knows(other, id) == NONE


def test_a_namesake_of_the_old_path_stays_another_project(person: Person) -> None:
    project = repository(person.work / "my-app", a="1\n")
    namesake = repository(person.work / "my" / "app", a="1\n")
    id, other = (
        person.talk(project, "grow the marigold"),
        person.talk(namesake, "plant the orchard"),
    )
    renamed = project.rename(person.work / "renamed")
    assert person.listed(renamed) == {id}
    assert person.listed(namesake) == {other}
    assert person.found("marigold orchard", renamed) <= {id}
    assert person.knows(namesake, id) == NONE


def test_a_search_in_a_project_finds_a_session_that_began_elsewhere(person: Person) -> None:
    project, elsewhere = repository(person.work / "my-app", a="1\n"), Path("/home/user/my-app")
    namesake = repository(person.work / "my" / "app", a="1\n")
    id = person.talk(elsewhere, "grow the marigold", folder=project)
    person.talk(project, "water the marigold", folder=project, id=id)
    assert person.found("marigold", project) == {id}
    assert person.found("marigold", namesake) == set()
    person.talk(project, "plant the orchard")
    renamed = project.rename(person.work / "renamed")
    assert person.found("marigold", renamed) == {id}


def test_a_path_with_a_token_is_in_no_note(person: Person) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    person.talk(repository(person.work / f"app-{token}", a="1\n"), "grow the marigold")
    person.talk(repository(person.work / "app", a="1\n"), "grow the marigold")
    notes = (person.home / ".session-memory" / "state" / "repositories.json").read_text()
    assert f'{person.work}/app"' in notes
    assert token not in notes


def test_a_search_takes_any_number_of_worktrees(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "store" / "memory.db"))
    places = tuple(f"/srv/{number}" for number in range(1000))
    for folders in ((), places):
        assert store.conversations(Filter(directories=places, folders=folders)) == []
    store.close()
