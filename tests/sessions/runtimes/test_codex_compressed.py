"""Rollouts that Codex has compressed (`.jsonl.zst`) or archived are read as all others: stored,
searched, listed, read, written to archives of ours, forgotten."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import zstandard
from records import codex_exchange, codex_line, new_id, write
from store_scene import StoreUser

from bench.scratch import remove_tree
from session_memory.common.system import zstd

WORK = "/srv/work"


class CodexUser(StoreUser):
    """A user of Codex alone; `rollout` is where the last one lies, or lay before it was
    compressed."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.day = home / ".codex" / "sessions" / "2026" / "11" / "20"
        self.copies = home / ".session-memory" / "state" / "codex"

    def said(self, question: str, answer: str) -> Path:
        """A session of one exchange, two hours ago."""
        self.id = new_id()
        then = time.time() - 7200
        head = codex_line("session_meta", {"id": self.id, "cwd": WORK, "source": "cli"}, at=then)
        path = self.day / f"rollout-2026-11-20T10-00-00-{self.id}.jsonl"
        write(path, head, *codex_exchange(question, answer, cwd=WORK, at=then))
        os.utime(path, (then, then))
        return path

    def compressed(self, path: Path) -> Path:
        """Compresses a rollout as Codex does: with the time of what it replaces."""
        status = path.stat()
        packed = path.with_suffix(".jsonl.zst")
        packed.write_bytes(zstandard.compress(path.read_bytes()))
        os.utime(packed, ns=(status.st_atime_ns, status.st_mtime_ns))
        path.unlink()
        return packed

    def archived(self, path: Path) -> Path:
        """Archives a rollout as `codex archive` does: it is moved."""
        folder = self.home / ".codex" / "archived_sessions"
        folder.mkdir(exist_ok=True)
        return path.rename(folder / path.name)

    def conversations(self) -> list[Path]:
        return list((self.home / ".session-memory" / "conversations").rglob("*.md"))

    def copied(self) -> list[str]:
        return [path.name for path in self.copies.rglob("rollout-*")]


@pytest.fixture
def person(tmp_path: Path) -> CodexUser:
    return CodexUser(tmp_path / "sessions" / "user")  # as a folder of Codex's is called


def test_one_that_was_never_seen_is_stored_found_listed_read_and_archived(
    person: CodexUser,
) -> None:
    rollout = person.said("Is the cherimoya ripe?", "The cherimoya is ripe.")
    (person.home / ".codex" / "session_index.jsonl").write_text(
        json.dumps({"id": person.id, "thread_name": "fruit"}) + "\n"
    )
    packed = person.compressed(rollout)
    assert person.result("ingest")["entries"] == 2
    assert person.result("ingest")["entries"] == 0
    assert len(person.result("search", "cherimoya")["hits"]) > 0
    [listed] = person.result("sessions", "--all")["sessions"]
    assert (listed["name"], listed["id"]) == ("fruit", person.id)
    assert "The cherimoya is ripe." in person.run("read", "fruit", "--all").stdout
    person.run("archive", person.id)
    assert ["The cherimoya is ripe." in path.read_text() for path in person.conversations()] == [
        True
    ]
    [copy] = person.copies.rglob("rollout-*")
    assert (copy.stat().st_mtime_ns, copy.stat().st_mode & 0o777) == (
        packed.stat().st_mtime_ns,
        0o600,
    )


def test_one_that_was_stored_before_is_not_stored_twice_nor_when_it_goes_on(
    person: CodexUser,
) -> None:
    rollout = person.said("one", "first")
    person.run("ingest")
    content = rollout.read_bytes()
    packed = person.compressed(rollout)
    assert person.run("ingest").returncode == 0
    assert person.stored() == ["one", "first"]
    assert person.statuses() == ["idle"]
    assert person.run("ingest").stdout == "Nothing new in 1 file.\n"
    rollout.write_bytes(content)  # resumed: Codex writes it out again
    packed.unlink()
    with rollout.open("ab") as file:
        file.write(
            b"".join(
                json.dumps(one).encode() + b"\n"
                for one in codex_exchange("two", "second", cwd=WORK)
            )
        )
    person.run("ingest")
    assert person.stored() == ["one", "first", "two", "second"]
    assert person.statuses() == ["idle"]
    assert person.copied() == []


def test_a_damaged_one_costs_itself_and_is_told(person: CodexUser) -> None:
    person.compressed(person.said("one", "first"))
    torn, changed, empty = (person.compressed(person.said("lost " * 200, "gone")) for _ in range(3))
    content = torn.read_bytes()
    torn.write_bytes(content[: len(content) // 2])
    changed.write_bytes(b"\0" * 40)
    empty.write_bytes(b"")
    done = person.run("ingest")
    assert (done.returncode, person.stored()) == (1, ["one", "first"])
    assert "zst: damaged: it ends in the middle" in " ".join(done.stdout.split())
    health = person.result("health-check", code=1)
    assert sorted(health["unread"]) == sorted(map(str, (torn, changed, empty)))
    assert health["compressed"] == 0
    for packed in (torn, changed, empty):
        packed.write_bytes(content)
    assert person.run("ingest").returncode == 0
    assert len(person.stored()) == 8


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """13 KB that become 400 MB (issue 28, D5b)."""
    packed = io.BytesIO()
    zeros = bytes(16 * 1024 * 1024)
    with zstandard.ZstdCompressor().stream_writer(packed, closefd=False) as writer:
        for _ in range(400_000_000 // len(zeros)):
            writer.write(zeros)
    assert len(packed.getvalue()) < 20_000
    return packed.getvalue()


def test_a_bomb_costs_itself_and_is_told(
    person: CodexUser, bomb: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zstd, "MOST_BYTES", 16 * 1024 * 1024)
    person.compressed(person.said("one", "first"))
    packed = person.compressed(person.said("lost", "gone"))
    packed.write_bytes(bomb)
    done = person.run("ingest")
    assert (done.returncode, person.stored()) == (1, ["one", "first"])
    assert "zst: it unpacks to more than 16 MB" in " ".join(done.stdout.split())
    done = person.run("ingest", "--file", shutil.copy(packed, tmp_path / packed.name))
    assert (done.returncode, person.stored()) == (1, ["one", "first"])
    assert "it unpacks to more than 16 MB" in " ".join(done.stdout.split())
    assert len(person.copied()) == 1
    assert str(packed) in person.result("health-check", code=1)["unread"]


def test_a_bomb_takes_little_memory(bomb: bytes, tmp_path: Path) -> None:
    (tmp_path / "bomb.zst").write_bytes(bomb)
    code = (
        "import os, pathlib, sys\nfrom session_memory.common.system.zstd import DamagedFileError, "
        "decompressed\n"
        "sizes = []\ntry:\n    for part in decompressed(os.open(sys.argv[1], os.O_RDONLY)): "
        "sizes.append(len(part))\n"
        "except DamagedFileError: print(sum(sizes), "
        "*pathlib.Path('/proc/self/status').read_text().split())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "bomb.zst")], capture_output=True, text=True
    )
    total, *status = done.stdout.split()
    assert int(total) <= 256 * 1024 * 1024
    assert int(status[status.index("VmHWM:") + 1]) < 80 * 1024  # kilobytes


def test_what_is_forgotten_is_in_no_copy_either(person: CodexUser) -> None:
    packed = person.compressed(person.said("Is the cherimoya ripe?", "The cherimoya is ripe."))
    person.run("ingest")
    assert person.run("forget", person.id, "--yes").returncode == 0
    assert person.result("search", "cherimoya", code=1)["hits"] == []
    place = person.home / ".session-memory"
    assert [
        path for path in place.rglob("*") if path.is_file() and b"cherimoya" in path.read_bytes()
    ] == []
    assert packed.exists()


def test_without_a_library_for_zstd_they_are_counted(person: CodexUser, tmp_path: Path) -> None:
    person.compressed(person.said("one", "first"))
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "zstandard.py").write_text("raise ImportError\n")
    (tmp_path / "none" / "compression.py").write_text("raise ImportError\n")
    bare = {"PYTHONPATH": f"{tmp_path}/none:{person.environment['PYTHONPATH']}"}
    assert person.run_process("ingest", **bare).returncode == 0
    assert (
        json.loads(person.run_process("health-check", "--json", **bare).stdout)["compressed"] == 1
    )
    assert "session-memory install --with zstd" in " ".join(
        person.run_process("health-check", **bare).stdout.split()
    )
    assert person.copied() == []


def test_several_frames_and_no_last_line_feed_are_read(person: CodexUser) -> None:
    rollout = person.said("one", "first")
    content = rollout.read_bytes().rstrip(b"\n")
    packed = person.compressed(rollout)
    packed.write_bytes(zstandard.compress(content[:300]) + zstandard.compress(content[300:]))
    person.run("ingest")
    assert person.stored() == ["one", "first"]


def test_one_that_was_archived_is_stored_listed_read_and_written_to_an_archive_of_ours(
    person: CodexUser,
) -> None:
    person.archived(person.said("Is the cherimoya ripe?", "The cherimoya is ripe."))
    assert person.result("ingest")["entries"] == 2
    [listed] = person.result("sessions", "--all")["sessions"]
    assert listed["id"] == person.id
    assert "The cherimoya is ripe." in person.run("read", person.id, "--all").stdout
    person.run("archive", person.id)
    assert ["The cherimoya is ripe." in path.read_text() for path in person.conversations()] == [
        True
    ]


def test_one_that_was_archived_and_is_forgotten_stays_so(person: CodexUser) -> None:
    moved = person.archived(
        person.compressed(person.said("Is the cherimoya ripe?", "The cherimoya is ripe."))
    )
    assert person.result("ingest")["entries"] == 2
    assert person.run("forget", person.id, "--yes").returncode == 0
    assert person.run("ingest").returncode == 0
    assert (person.stored(), moved.exists()) == ([], True)


def test_one_that_is_archived_and_taken_back_stays_the_same_session(person: CodexUser) -> None:
    rollout = person.said("one", "first")
    person.run("ingest")
    moved = person.archived(rollout)
    assert person.result("ingest")["entries"] == 0
    assert (person.stored(), person.statuses()) == (["one", "first"], ["idle"])
    moved.rename(rollout)
    with rollout.open("ab") as file:
        file.write(
            b"".join(
                json.dumps(one).encode() + b"\n"
                for one in codex_exchange("two", "second", cwd=WORK)
            )
        )
    assert person.result("ingest")["entries"] == 2
    assert (person.stored(), person.statuses()) == (["one", "first", "two", "second"], ["idle"])
    assert person.copied() == []


def test_without_a_library_for_zstd_what_is_archived_is_read_all_the_same(
    person: CodexUser, tmp_path: Path
) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "zstandard.py").write_text("raise ImportError\n")
    person.archived(person.said("one", "first"))
    person.compressed(person.said("two", "second"))
    assert (
        person.run_process(
            "ingest", PYTHONPATH=f"{tmp_path}/none:{person.environment['PYTHONPATH']}"
        ).returncode
        == 0
    )
    assert person.stored() == ["one", "first"]
    person.run("ingest")
    assert person.stored() == ["one", "first", "two", "second"]


def test_those_in_a_backup_are_taken_in_and_are_the_same_sessions(person: CodexUser) -> None:
    person.archived(person.compressed(person.said("zero", "none")))
    person.compressed(person.said("one", "first"))
    shutil.copytree(person.home / ".codex", person.home / "backup" / "2025")
    remove_tree(person.home / ".codex" / "sessions")
    for words in (["--dir", person.home / "backup"], ["--dir", person.home / "backup"]):
        assert person.run("ingest", *words).returncode == 0
        assert sorted(person.stored()) == ["first", "none", "one", "zero"]
    assert person.id in person.run("conversations", "--json").stdout
    (person.home / ".codex" / "sessions").symlink_to(person.home / "backup" / "2025" / "sessions")
    person.run("ingest")
    assert (len(person.stored()), person.result("health-check")["files"]) == (4, 2)


def test_a_single_one_is_taken_in_and_a_damaged_one_in_a_backup_is_told(
    person: CodexUser, tmp_path: Path
) -> None:
    packed = person.compressed(person.said("one", "first"))
    backup = shutil.copytree(packed.parent, person.home / "backup")
    (backup / f"rollout-2026-11-20T10-00-00-{new_id()}.jsonl.zst").write_bytes(
        packed.read_bytes()[:-9]
    )
    remove_tree(person.home / ".codex")
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "zstandard.py").write_text("raise ImportError\n")
    bare = person.run_process(
        "ingest", "--dir", backup, PYTHONPATH=f"{tmp_path}/none:{person.environment['PYTHONPATH']}"
    )
    assert (
        bare.returncode,
        "session-memory install --with zstd" in " ".join(bare.stdout.split()),
    ) == (1, True)
    assert person.run("ingest", "--file", backup / packed.name).returncode == 0
    assert person.stored() == ["one", "first"]
    done = person.run("ingest", "--dir", backup)
    assert (done.returncode, "damaged: it ends in the middle" in " ".join(done.stdout.split())) == (
        1,
        True,
    )
    assert person.id in person.run("conversations", "--json").stdout


@pytest.mark.parametrize("first", ["sessions", "archived_sessions"])
def test_one_that_was_archived_is_one_session_in_whatever_order_its_places_are_taken_in(
    person: CodexUser, first: str
) -> None:
    rollout = person.said("one", "first")
    folder = person.home / ".codex" / "archived_sessions"
    if first == "sessions":
        person.run("ingest")
    person.archived(rollout)
    assert person.result("ingest", "--dir", folder)["entries"] == (0 if first == "sessions" else 2)
    for words in (["--dir", folder], ["--file", folder / rollout.name], [], ["--dir", folder], []):
        assert person.result("ingest", *words)["entries"] == 0
    assert (person.stored(), person.statuses()) == (["one", "first"], ["idle"])
    assert [hit["entry"]["text"] for hit in person.result("search", "first")["hits"]] == ["first"]


def test_one_that_is_copied_about_is_one_session_wherever_it_is_taken_in_from(
    person: CodexUser,
) -> None:
    rollout = person.said("one", "first")
    backup = shutil.copytree(rollout.parent, person.home / "some")
    shutil.copytree(backup, backup / "again" / "twice")
    person.compressed(backup / rollout.name)
    for path in (person.day, person.day.parent, person.day.parents[2], backup, backup / "again"):
        assert person.run("ingest", "--dir", path).returncode == 0
        assert (person.stored(), person.statuses()) == (["one", "first"], ["idle"])
    with (backup / "again" / "twice" / rollout.name).open("ab") as file:
        file.write(
            b"".join(
                json.dumps(one).encode() + b"\n"
                for one in codex_exchange("two", "second", cwd=WORK)
            )
        )
    person.run("ingest", "--dir", backup / "again")
    person.run("ingest")
    assert (person.stored(), person.statuses()) == (["one", "first", "two", "second"], ["idle"])


def test_one_that_is_forgotten_does_not_come_back_from_where_it_was_archived(
    person: CodexUser,
) -> None:
    moved = person.archived(person.said("Is the cherimoya ripe?", "The cherimoya is ripe."))
    person.run("ingest", "--dir", moved.parent)
    assert person.run("forget", person.id, "--yes").returncode == 0
    person.run("ingest", "--dir", moved.parent)
    person.run("ingest")
    assert person.stored() == []
