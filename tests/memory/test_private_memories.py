"""Memories of excluded sessions are on private pages that no agent reads, even after a crash."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from memories_scene import DAY, FEBRUARY, MemoryDirectory, conversation, fact, told_with_prompt

from session_memory.history.store.rules import ReadRules
from session_memory.memory import forgotten, pages
from session_memory.memory.library import Library
from session_memory.memory.memory_index import MemoryFilter, MemoryIndex
from session_memory.memory.strategy import Memory
from session_memory.sessions.settings.homes import person_home

DIARY = "projects: {/srv/diary: {ignore: true}}\n"
NO_TEXT = "sessions: {diary: {text: false}}\n"
SECRET, OPEN = "The cherimoya is ripe in May", "The persimmon is ripe in November"


class Scene:
    """Memories of two sessions, which the store does not know: `diary`, started in /srv/diary, and another."""

    def __init__(self, path: Path) -> None:
        self.memories = MemoryDirectory(path / ".session-memory")
        self.directory = self.memories.directory
        self.private = self.directory.parent / ".private-memories"
        self.home = path
        diary = conversation(20, FEBRUARY + DAY, session_id="diary")._replace(cwd="/srv/diary")
        (self.secret,) = self.memories.keep(fact(SECRET, "fruit"), of=diary)
        self.memories.keep(Memory("project", "Cherimoya", "Grown in May.", "The diary"), of=diary)
        (self.open,) = self.memories.keep(fact(OPEN, "fruit"))

    def rules(self, text: str) -> None:
        (self.home / ".session-memory/config.yaml").write_text(text)

    def index(self, *, with_private: bool = False) -> MemoryIndex:
        environ = {"HOME": str(self.home)}
        rules = partial(ReadRules, lambda group: person_home(environ), environ)
        return MemoryIndex(self.memories.database, rules, with_private=with_private)

    def look(self) -> list[str]:
        """As whoever looks at memories: the titles that they get."""
        with closing(self.index()) as index:
            Library(str(self.directory), index).refresh()
            return sorted(one.title for one in index.memories(MemoryFilter()))

    def files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.directory.parent)): path.read_text() for path in self._paths()
        }

    def _paths(self) -> Iterator[Path]:
        yield from self.directory.rglob("*.md")
        yield from self.private.rglob("*.md")

    def told(self) -> str:
        prompt = "When are cherimoya and persimmon ripe, in May or November?"
        return told_with_prompt(self.directory, prompt, 5000)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    with closing(scene.memories):
        yield scene


@pytest.mark.parametrize("rule", [DIARY, NO_TEXT])
def test_a_rule_takes_memories_from_the_pages_and_without_it_they_are_as_they_were(
    scene: Scene, rule: str
) -> None:
    scene.look()
    before = scene.files()
    scene.rules(rule)
    assert scene.look() == [OPEN]
    grep = subprocess.run(
        ["grep", "-ril", "cherimoya", str(scene.directory)], capture_output=True, text=True
    )
    assert (grep.stdout, grep.returncode) == ("", 1)
    assert not (scene.directory / "projects").exists(), "the name of its page tells of it too"
    assert sorted(scene.files()) == [
        ".private-memories/facts.md",
        ".private-memories/projects/the-diary.md",
        "memories/facts.md",
    ]
    assert stat.S_IMODE(scene.private.stat().st_mode) == 0o700
    assert "cherimoya" not in scene.told()
    assert "persimmon" in scene.told()
    scene.rules("")
    assert scene.look() == ["Cherimoya", SECRET, OPEN]
    assert "cherimoya" in scene.told()
    assert {
        path: sorted(filter(None, text.split("\n"))) for path, text in scene.files().items()
    } == {path: sorted(filter(None, text.split("\n"))) for path, text in before.items()}
    assert not scene.private.exists()
    assert forgotten.read(str(scene.directory)) == []


def test_a_person_gets_those_without_text_where_they_ask_for_it(scene: Scene) -> None:
    for rule, shown in ((NO_TEXT, [SECRET, OPEN]), (DIARY, [OPEN])):
        scene.rules(rule)
        scene.look()
        with closing(scene.index(with_private=True)) as index:
            assert (
                sorted(one.title for one in index.memories(MemoryFilter(kinds=("fact",)))) == shown
            )


def test_what_says_the_same_is_known_and_what_is_forgotten_goes_where_it_is_private(
    scene: Scene,
) -> None:
    scene.rules(DIARY)
    scene.look()
    assert scene.memories.keep(fact(SECRET, "fruit")) == [scene.secret]
    with closing(scene.index()) as index:
        Library(str(scene.directory), index).forget([scene.secret])
    assert SECRET not in str(scene.files())
    assert scene.memories.keep(fact(SECRET, "fruit")) == []


def test_a_note_of_a_person_on_a_private_page_stays_there_and_is_not_listed(scene: Scene) -> None:
    scene.rules(DIARY)
    scene.look()
    with (scene.private / "facts.md").open("a") as page:
        page.write("\n## The cherimoya tree is Ada's\n")
    assert scene.look() == [OPEN]
    scene.rules("")
    assert scene.look() == ["Cherimoya", SECRET, OPEN]
    assert (
        scene.files()[".private-memories/facts.md"] == "# Facts\n\n## The cherimoya tree is Ada's\n"
    )


def test_a_private_page_that_they_delete_is_forgotten(scene: Scene) -> None:
    scene.rules(DIARY)
    scene.look()
    scene.look()
    (scene.private / "facts.md").unlink()
    for path in [scene.private, *scene.private.rglob("*")]:
        os.utime(path, (FEBRUARY / 1000, FEBRUARY / 1000))
    scene.look()
    assert [one.id for one in forgotten.read(str(scene.directory))] == [scene.secret]


def test_a_link_in_the_place_of_the_private_folder_gets_nothing(
    scene: Scene, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    scene.private.symlink_to(tmp_path / "elsewhere")
    scene.rules(DIARY)
    with pytest.raises(OSError, match="private-memories"):
        scene.look()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    with closing(scene.index()) as index:
        assert [one.title for one in index.memories(MemoryFilter())] == [OPEN]
    assert "cherimoya" not in scene.told()


def test_an_edit_of_the_open_page_survives_a_kill_between_both_pages(scene: Scene) -> None:
    scene.rules(DIARY)
    _killed(scene, 1)
    assert SECRET in scene.files()["memories/facts.md"]
    assert SECRET in scene.files()[".private-memories/facts.md"]
    scene.memories.edit("facts.md", SECRET, f"{SECRET}, says Ada")
    assert scene.look() == [OPEN]
    assert f"{SECRET}, says Ada" in scene.files()[".private-memories/facts.md"]
    scene.rules("")
    assert f"{SECRET}, says Ada" in scene.look()


def test_killed_at_any_write_nothing_is_lost_and_nothing_there_twice(tmp_path: Path) -> None:
    ends = []
    for there in ("", DIARY):  # on the way to the private pages, and back
        for step in range(40):
            scene = Scene(tmp_path / f"{len(ends)}")
            scene.rules(there)
            scene.look()
            scene.rules("" if there else DIARY)
            ends.append(_killed(scene, step))
            every = "".join(scene.files().values())
            assert all(every.count(f" ^{id}") in (1, 2) for id in (scene.secret, scene.open)), (
                f"killed at {step}"
            )
            assert scene.look() == (["Cherimoya", SECRET, OPEN] if there else [OPEN])
            every = "".join(scene.files().values())
            assert [every.count(text) for text in (SECRET, OPEN)] == [1, 1], f"killed at {step}"
            assert forgotten.read(str(scene.directory)) == []
            scene.memories.close()
            if ends[-1] == 0:
                break
    assert ends.count(0) == 2
    assert ends.count(-signal.SIGKILL) >= 8


def _killed(scene: Scene, step: int) -> int:
    """How a process ends that looks at the memories and is killed before its write number `step`."""
    child = os.fork()
    if child == 0:
        begun: list[int] = []

        def dying(module: object, name: str) -> None:
            original = getattr(module, name)

            def run(*arguments: object, **options: object) -> object:
                begun.append(1)
                if len(begun) > step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return original(*arguments, **options)

            setattr(module, name, run)

        dying(pages, "write_atomically")
        dying(pages, "_remove")
        dying(MemoryIndex, "replace")
        try:
            scene.look()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
