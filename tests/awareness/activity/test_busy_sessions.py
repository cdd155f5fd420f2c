"""Collisions are reported while many other sessions are active, of which a prompt reads only a few."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from collision_scene import Pair, collisions

from bench.clones import Actor, Clone
from session_memory.awareness.activity import _concerned
from session_memory.awareness.activity._concerned import WorkSearch
from session_memory.awareness.activity.updates import OLD_SECONDS
from session_memory.common.system.deadline import DeadlineError
from session_memory.sessions.transcripts.entries import Session

EDITED = '! src/app.py: edited just now by "discord", after you read it'


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(Clone(tmp_path))


def busy(pair: Pair, number: int) -> list[Actor]:
    """Sessions that are known to main, and read other files from now on."""
    actors = [pair.clone.session(f"busy-{at}") for at in range(number)]
    while pair.main.prompt():
        pass
    return actors


def work(actors: list[Actor]) -> None:
    for actor in actors:
        actor.say(f"What does {actor.name} say of app.py?")
        actor.read("docs/guide.md")


def by_edit(actor: Actor) -> None:
    actor.edit("src/app.py", "x\n")


def by_sub_agent(actor: Actor) -> None:
    actor.sub_agent().edit("src/app.py", "x\n")


WAYS: dict[str, tuple[Callable[[Actor], object], str]] = {
    "an edit": (by_edit, EDITED),
    "a sub-agent": (by_sub_agent, EDITED),
    "a command": (lambda actor: actor.bash("cd src && sed -i s/app/x/ app.py"), EDITED),
    "removal of its directory": (
        lambda actor: actor.bash("rm -rf src"),
        "! src/app.py: removed or moved just now",
    ),
    "a move of its directory": (
        lambda actor: actor.bash("mv src lib"),
        "! src/app.py: removed or moved just now",
    ),
}


@pytest.mark.parametrize("number", [5, 8, 20, 50])
def test_an_edit_is_told_with_the_next_prompt_however_many_others_are_at_work(
    pair: Pair, number: int
) -> None:
    others = busy(pair, number)
    pair.main.read("src/app.py")
    pair.discord.edit("src/app.py", "x\n")
    work(others)
    text = pair.main.prompt()
    assert collisions(text) == [EDITED]
    assert text.count("\n- ") == 3  # and the news of the last ones
    work(others)
    assert collisions(pair.main.prompt()) == []


@pytest.mark.parametrize("way", WAYS)
def test_whatever_changes_the_file_is_told_among_eight_others(pair: Pair, way: str) -> None:
    others = busy(pair, 8)
    pair.main.read("src/app.py")
    change, line = WAYS[way]
    change(pair.discord)
    work(others)
    assert [one for one in collisions(pair.main.prompt()) if one.startswith(line)]


def test_a_stash_is_told_among_eight_others(pair: Pair) -> None:
    others = busy(pair, 8)
    pair.main.edit("src/app.py", "1\n")
    pair.discord.bash("git stash -q")
    work(others)
    (line,) = collisions(pair.main.prompt())
    assert "`git stash -q` run just now" in line


def test_who_switched_the_branch_is_told_among_eight_others(pair: Pair) -> None:
    others = busy(pair, 8)
    pair.discord.bash("git switch -q -c fix/login")
    work(others)
    (line,) = collisions(pair.main.prompt())
    assert line.endswith('`git switch -q -c fix/login` run just now by "discord"')


def test_an_old_edit_and_a_new_one_are_told_at_once(pair: Pair) -> None:
    others = busy(pair, 8)
    telegram = others.pop()
    pair.main.read("src/app.py")
    pair.main.read("src/db.py")
    pair.discord.edit("src/app.py", "x\n")
    pair.later(50)
    telegram.edit("src/db.py", "x\n")
    work(others)
    assert collisions(pair.main.prompt()) == [
        f'! src/db.py: edited just now by "{telegram.name}", after you read it',
        '! src/app.py: edited 50m ago by "discord", after you read it',
    ]


def test_an_edit_of_a_session_that_is_seen_first_is_told_however_much_it_read_since(
    pair: Pair,
) -> None:
    pair.main.read("src/app.py")
    pair.later(1)
    telegram = pair.clone.session("telegram")
    telegram.edit("src/app.py", "x\n")
    for number in range(40):
        telegram.say(f"And number {number}?")
        telegram.write(f"docs/{number}.md", "word " * 8000)
    line = '! src/app.py: edited just now by "telegram", after you read it'
    assert collisions(pair.main.prompt()) == [line]


def test_an_edit_that_was_not_looked_for_in_time_is_told_with_the_next_prompt(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = busy(pair, 8)
    pair.main.read("src/app.py")
    pair.discord.edit("src/app.py", "x\n")
    work(others)
    searched, hangs = WorkSearch._may_concern, [pair.discord.id]

    def may_concern(search: WorkSearch, session: Session) -> bool:
        if session.key in hangs:
            hangs.remove(session.key)
            raise DeadlineError
        return searched(search, session)

    monkeypatch.setattr(WorkSearch, "_may_concern", may_concern)
    assert collisions(pair.main.prompt()) == []
    work(others)
    pair.later(OLD_SECONDS / 60 - 1)  # until then it is none of the last ones
    work(others)
    assert collisions(pair.main.prompt()) == [
        '! src/app.py: edited 5h ago by "discord", after you read it'
    ]


def test_reads_and_words_about_the_file_are_no_reason_to_be_read_first(pair: Pair) -> None:
    others = busy(pair, 8)
    pair.main.read("src/app.py")
    for actor in others:
        actor.say("What is wrong in app.py?")
        actor.read("src/app.py")
        actor.bash("git status; git diff app.py; cat src/app.py")
        actor.edit("docs/guide.md", "x\n")
    text = pair.main.prompt()
    assert collisions(text) == []
    assert text.endswith("+5 more")


@pytest.mark.parametrize("size", range(1, 30))
def test_a_session_is_searched_in_whole_lines(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_concerned, "_FIRST_PART_BYTES", size)
    monkeypatch.setattr(_concerned, "_LARGEST_PART_BYTES", 2 * size)
    lines = [str(number).encode() * (number % 9) for number in range(1, 40)]
    path = tmp_path / "lines"
    path.write_bytes(b"".join([line + b"\n" for line in lines]))
    with path.open("rb") as file:
        parts = [*_concerned._parts_backward(file.fileno(), path.stat().st_size)]
    whole = [part[begin:] for part, begin in reversed(parts)]
    assert [line for part in whole for line in part.split(b"\n") if line] == [
        line for line in lines if line
    ]


@pytest.fixture
def searched_back(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the transcripts that are searched from their end back."""
    sizes: list[int] = []
    search = _concerned._parts_backward

    def parts_backward(descriptor: int, end: int) -> Iterator[tuple[bytes, int]]:
        sizes.append(end)
        return search(descriptor, end)

    monkeypatch.setattr(_concerned, "_parts_backward", parts_backward)
    return sizes


def unreported(pair: Pair, number: int) -> list[Actor]:
    """Sessions of which main's first two updates have no room for most."""
    actors = [pair.clone.session(f"busy-{at}") for at in range(number)]
    for actor in actors:
        actor.write("docs/guide.md", "word " * 20_000)
    pair.main.read("src/app.py")
    for _ in range(2):
        work(actors)
        pair.main.prompt()
    return actors


def test_an_unreported_session_is_searched_once_for_the_same_files(
    pair: Pair, searched_back: list[int]
) -> None:
    others = unreported(pair, 12)
    assert len(searched_back) > 6
    searched_back.clear()
    work(others)
    pair.main.prompt()
    assert searched_back == []
    others[0].edit("src/app.py", "x\n")
    work(others)
    line = f'! src/app.py: edited just now by "{others[0].name}", after you read it'
    assert collisions(pair.main.prompt()) == [line]


def test_an_unreported_session_is_searched_again_for_another_file(
    pair: Pair, searched_back: list[int]
) -> None:
    others = unreported(pair, 12)
    searched_back.clear()
    pair.main.read("src/db.py")
    work(others)
    pair.main.prompt()
    assert len(searched_back) > 3


def test_an_unreported_session_is_searched_again_if_its_transcript_was_replaced(
    pair: Pair, searched_back: list[int]
) -> None:
    others = unreported(pair, 12)
    searched_back.clear()
    transcript = others[0].path
    copy = transcript.with_suffix(".copy")
    copy.write_bytes(transcript.read_bytes())
    copy.replace(transcript)
    work(others)
    pair.main.prompt()
    assert searched_back == [transcript.stat().st_size]
