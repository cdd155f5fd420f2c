"""Kept content is never lost or half written, whatever happens during keep and restore.

Faults are in the disk or the transcript.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kept_scene import KeptUser, delete
from records import append, exchange

from session_memory.history.copies import pack as pack_module
from session_memory.history.copies.chunks import chunks_of

KILLS, FUZZ_KILLS = 12, 250  # of each, keep and restore
LONGEST_SECONDS = 0.15


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptUser:
    return KeptUser(tmp_path, monkeypatch)


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    return FUZZ_KILLS if request.config.getoption("--fuzz") else KILLS


def talk(seed: int, size: int = 600_000) -> list[dict[str, object]]:
    chance = random.Random(seed)
    return [
        one
        for _ in range(size // 4000)
        for one in exchange(f"{chance.randbytes(1500).hex()}?", "So it is.")
    ]


def killed(work: Callable[[], object], seconds: float) -> bool:
    """Do some work in a process that is killed after so long; return whether it was killed before
    it had ended."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.WIFSIGNALED(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def check(person: KeptUser) -> dict[str, dict[str, bytes]]:
    """Return what is kept, after a check of the pack."""
    if not person.pack_file.exists():
        return {}
    with closing(sqlite3.connect(person.pack_file)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return person.kept()


def test_a_keep_that_is_killed_at_any_moment_leaves_what_was_kept_before_and_goes_on(
    person: KeptUser, kills: int
) -> None:
    paths = [person.talk(name, *talk(seed)) for seed, name in enumerate("abc")]
    was_killed, sizes = 0, dict.fromkeys("abc", 0)
    for number in range(kills):
        append(paths[number % 3], *talk(number + 10, 40_000))
        was_killed += killed(person.keep, random.uniform(0, LONGEST_SECONDS))
        for name, files in check(person).items():
            (content,) = files.values()
            assert (
                (person.projects / "-srv-agent" / f"{name}.jsonl").read_bytes().startswith(content)
            )
            assert len(content) >= sizes[name]
            sizes[name] = len(content)
    assert was_killed
    assert person.keep().problems == []
    assert [*person.kept().values()] == [
        {
            f"projects/-srv-agent/{name}.jsonl": (
                person.projects / "-srv-agent" / f"{name}.jsonl"
            ).read_bytes()
        }
        for name in person.kept()
    ]
    assert set(person.kept()) == set("abc")
    with closing(sqlite3.connect(person.pack_file)) as database:
        unused = "SELECT count(*) FROM kept_chunks WHERE id NOT IN (SELECT chunk FROM kept_parts)"
        assert database.execute(unused).fetchone() == (0,)


def test_a_restore_that_is_killed_at_any_moment_leaves_no_half_transcript_and_the_next_completes_it(
    person: KeptUser, kills: int
) -> None:
    path = person.talk("a", *talk(1))
    result = path.with_suffix("") / "tool-results" / "b.txt"
    result.parent.mkdir(parents=True)
    result.write_bytes(random.randbytes(3_000_000))
    whole = {file: file.read_bytes() for file in (path, result)}
    person.keep()
    was_killed = 0
    for _ in range(kills):
        delete(path)
        was_killed += killed(
            lambda: person.run("restore", "a"), random.uniform(0, 2 * LONGEST_SECONDS)
        )
        for file, content in whole.items():
            assert not file.exists() or file.read_bytes() == content
        if path.exists():
            assert result.exists()
        else:
            assert person.run("restore", "a").returncode == 0
            assert {file: file.read_bytes() for file in whole} == whole
        assert sorted(os.listdir(path.parent)) == ["a", "a.jsonl"]
        assert os.listdir(result.parent) == ["b.txt"]
    assert was_killed


def test_on_a_full_disk_what_was_kept_stays_and_the_fault_is_reported(person: KeptUser) -> None:
    path = person.talk("a", *exchange("one?", "Two."))
    person.keep()
    before = person.kept()
    append(path, *talk(1, 4_000_000))
    person.talk("b", *talk(2, 4_000_000))
    said = person.home / "said"

    def keep() -> None:
        location = person.ingested()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
        try:
            problems = person.keep_in(*location).problems
        except Exception as error:
            problems = [f"{type(error).__name__}: {error}"]
        said.write_text("\n".join(problems))

    assert not killed(keep, 20)
    assert said.read_text()
    assert {
        name: files for name, files in check(person).items() if name in before
    }.keys() == before.keys()
    assert all(path.read_bytes().startswith(content) for content in person.kept()["a"].values())
    assert person.keep().problems == []
    assert list(person.kept()["a"].values()) == [path.read_bytes()]
    assert set(person.kept()) == {"a", "b"}


def test_a_restore_on_a_full_disk_leaves_nothing_and_says_so(person: KeptUser) -> None:
    path = person.talk("a", *talk(1, 3_000_000))
    whole = path.read_bytes()
    person.keep()
    delete(path)
    said = person.home / "said"

    def restore() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
        done = person.run("restore", "a")
        said.write_text(f"{done.returncode} {done.stderr}")

    assert not killed(restore, 20)
    assert said.read_text().startswith("1 ")
    assert "File too large" in said.read_text()
    assert os.listdir(path.parent) == []
    assert person.run("restore", "a").returncode == 0
    assert path.read_bytes() == whole


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[], None]]]:
    """Things that happen once the first chunk of a file was read."""
    happens: list[Callable[[], None]] = []

    def chunks(*given: object, **named: object) -> Iterator[bytes]:
        for chunk in chunks_of(*given, **named):  # type: ignore[arg-type]
            yield chunk
            if happens:
                happens.pop()()

    monkeypatch.setattr(pack_module, "chunks_of", chunks)
    yield happens
    assert not happens


def test_a_transcript_that_grows_while_it_is_kept_is_kept_as_it_was_and_then_whole(
    person: KeptUser, meanwhile: list[Callable[[], None]]
) -> None:
    path = person.talk("a", *talk(1, 3_000_000))
    before = path.read_bytes()
    meanwhile.append(lambda: append(path, *exchange("more?", "Yes.")))
    assert person.keep().problems == []
    assert list(person.kept()["a"].values()) == [before]
    person.keep()
    assert list(person.kept()["a"].values()) == [path.read_bytes()]


def test_a_transcript_that_shrinks_while_it_is_kept_leaves_what_was_kept(
    person: KeptUser, meanwhile: list[Callable[[], None]]
) -> None:
    path = person.talk("a", *exchange("one?", "Two."))
    person.keep()
    before = person.kept()
    append(path, *talk(1, 4_000_000))
    meanwhile.append(lambda: os.truncate(path, 100_000))
    person.keep()
    assert person.kept() == before
    person.keep()
    assert list(person.kept()["a"].values()) == [path.read_bytes()]


def test_a_transcript_that_is_deleted_while_it_is_kept_is_kept_whole(
    person: KeptUser, meanwhile: list[Callable[[], None]]
) -> None:
    path = person.talk("a", *talk(1, 3_000_000))
    before = path.read_bytes()
    meanwhile.append(path.unlink)
    assert person.keep().problems == []
    assert list(person.kept()["a"].values()) == [before]
