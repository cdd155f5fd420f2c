"""Two projects to which a runtime gives the same folder, such as `my-app` and `my/app`.

They share the folder of transcripts, but not updates, lists and search results.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from git_scene import repository
from hooks_scene import run as run_hook
from records import append, exchange, new_id
from store_scene import StoreUser

from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.table import all_runtimes, runtime
from session_memory.sessions.transcripts.projects import is_of_namesake

CLAUDE = runtime("agent-sdk")
NAMES = ("my-app", "my/app", "my_app", "my.app")


class Person(StoreUser):
    """Has a session in each of some directories, which says what directory that is, and has edited
    `a.py` there."""

    def __init__(self, home: Path, names: tuple[str, ...], *, with_git: bool) -> None:
        super().__init__(home)
        self.ids: dict[str, str] = {}
        for name in names:
            directory = home / "w" / name
            if with_git:
                repository(directory, a="1\n")
            else:
                directory.mkdir(parents=True)
            self.talk(
                name,
                ("Edit", {"file_path": f"{directory}/a.py", "old_string": "1", "new_string": "2"}),
            )

    def path(self, name: str) -> Path:
        id = self.ids.setdefault(name, new_id())
        return Path(
            CLAUDE.project_dir(str(self.home / ".claude"), str(self.home / "w" / name)),
            f"{id}.jsonl",
        )

    def talk(self, name: str, *calls: tuple[str, dict[str, str]]) -> None:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        where = {"sessionId": path.stem, "cwd": str(self.home / "w" / name), "at": time.time() - 60}
        append(path, *exchange(f"plant the orchard of {name}", f"Planted in {name}.", **where))
        for call in calls:
            append(path, *exchange(f"edit the file of {name}", call, **where))

    def prompt(self, name: str) -> str:
        event = {
            "session_id": self.ids[name],
            "hook_event_name": "UserPromptSubmit",
            "prompt": "go on",
            "transcript_path": str(self.path(name)),
            "cwd": str(self.home / "w" / name),
        }
        return run_hook(event, self.home).decode()


@pytest.mark.parametrize("with_git", [True, False], ids=["git", "no-git"])
def test_projects_with_directories_of_like_names_are_told_nothing_of_each_other(
    tmp_path: Path, with_git: bool
) -> None:
    person = Person(tmp_path, NAMES, with_git=with_git)
    assert len({person.path(name).parent for name in NAMES}) == 1
    for name in NAMES:
        assert person.prompt(name) == ""
    person.talk("my/app")
    assert person.prompt("my-app") == ""


def test_a_second_session_of_the_same_project_is_told_though_the_folder_is_shared(
    tmp_path: Path,
) -> None:
    person = Person(tmp_path, NAMES[:2], with_git=True)
    first = person.ids.pop("my-app")
    person.talk("my-app")
    assert "the orchard of" in person.prompt("my-app")
    assert first not in person.ids.values()


def test_sessions_lists_those_of_this_project_alone(tmp_path: Path) -> None:
    person = Person(tmp_path, NAMES, with_git=True)
    for name in NAMES:
        listed = person.result("sessions", cwd=tmp_path / "w" / name)["sessions"]
        assert [one["id"] for one in listed] == [person.ids[name]]
    person.path("my-app").unlink()
    listed = person.result("sessions", cwd=tmp_path / "w" / "my-app")["sessions"]
    assert {one["id"] for one in listed} == {person.ids[name] for name in NAMES[1:]}
    assert "no session yet" in person.run("sessions", cwd=tmp_path / "w" / "my-app").stdout


def test_a_search_in_a_project_and_a_rule_for_it_are_about_its_directory(tmp_path: Path) -> None:
    person = Person(tmp_path, NAMES, with_git=True)
    found = person.result("search", "orchard", "--project", str(tmp_path / "w" / "my-app"))["hits"]
    assert {hit["conversation"]["session_id"] for hit in found} == {person.ids["my-app"]}
    person.config(f"projects:\n  {tmp_path}/w/my/app: {{ignore: true}}\n")
    listed = person.result("sessions", "--all")["sessions"]
    assert {one["id"] for one in listed} == {person.ids[name] for name in NAMES if name != "my/app"}


@pytest.mark.parametrize(
    "one", [one for one in all_runtimes() if one.HAS_PROJECT_FOLDERS], ids=lambda one: one.name
)
def test_each_runtime_that_names_directories_alike_has_its_sessions_told_apart(
    tmp_path: Path, one: Runtime
) -> None:
    directories = [repository(tmp_path / "w" / name, a="1\n") for name in NAMES]
    for directory in directories:
        folder = one.project_dir(str(tmp_path / one.USUAL_DIR), str(directory))
        for other in directories:
            shares = one.project_dir(str(tmp_path / one.USUAL_DIR), str(other)) == folder
            found = is_of_namesake(
                one, f"{folder}/x.jsonl", str(other), str(directory), str(tmp_path)
            )
            assert found == (shares and other != directory)
