"""Much that is new is read by other processes: what comes into the store is the same, whatever becomes of these."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from records import assistant, exchange, lines, tool_result, user
from store_scene import Scene

from session_memory.runtimes import claude
from session_memory.store.ingest import pool as ahead
from session_memory.store.ingest import worker_start as reading_start
from session_memory.store.ingest.extract import Extractor
from session_memory.store.ingest.ingestion import Ingestion
from session_memory.store.ingest.pool import ReadAhead
from session_memory.store.ingest.sources import SourceDirectory
from session_memory.store.ingest.worker import packed, read_pieces, unpacked

ROOT = Path(__file__).resolve().parents[2]
FILES = 7
DIES_AT_ONCE = "raise SystemExit(1)"
SENDS_HALF = """
import sys
sys.stdin.buffer.read()
sys.stdout.buffer.write((1000).to_bytes(8, "little") + b"half of what was announced")
"""
# Both are run as programs of their own: what runs the tests may have several threads, and then nothing is forked.
HOLDS_THE_PIPES = f"""
import sys, time
sys.path[:0] = [{str(ROOT)!r}]
from session_memory.store.ingest import pool as ahead, worker_start as reading_start
from session_memory.store.ingest.sources import SourceDirectory
ahead.LEAST_BYTES = 0
ahead.WAITING_PIECES = 1
if sys.argv[2] == "interpreters":
    ahead.may_fork = reading_start.may_fork = lambda: False
held = ahead.ReadAhead(SourceDirectory(sys.argv[1]).files(), "", 2000, 2)
print(*[worker._process.pid for worker in held._workers])
print(type(held._workers[0]._process).__name__, flush=True)
time.sleep(60)
"""
TAKES_IN = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}]
from session_memory.store.ingest import pool as ahead, worker_start as reading_start
from session_memory.store.ingest.ingestion import Ingestion
from session_memory.store.ingest.sources import SourceDirectory
from session_memory.store.sqlite.engine import SqliteStore
ahead.LEAST_BYTES = 0
store = SqliteStore(sys.argv[2])
for number in range(2):
    Ingestion(store, workers=2, batch_bytes=4000).scan(SourceDirectory(sys.argv[1]))
store.close()
"""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Files of several pieces each, one of which brings the result of a call in the piece before."""
    scene = Scene(tmp_path)
    for number in range(FILES):
        call = assistant(("Bash", {"command": f"make {number}"}))
        call_id = call["message"]["content"][0]["id"]
        said = [record for turn in range(40) for record in exchange(f"question {number}.{turn}", "an answer " * 9)]
        told = [{"type": "tool_result", "tool_use_id": call_id, "content": "Exit code 2\nno rule", "is_error": True}]
        scene.write(f"session-{number}", user("begin"), call, *said, user(told), user("end"))
    return scene


@pytest.fixture(autouse=True)
def nothing_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """From this process, whose state a test may have changed."""
    for module in (ahead, reading_start):
        monkeypatch.setattr(module, "may_fork", lambda: False)


def everything(scene: Scene) -> list[object]:
    return [item._replace(id=0) for conversation in scene.conversations() for item in scene.items(conversation)]


def take_in(scene: Scene, name: str, workers: int, batch_bytes: int = 4000) -> list[object]:
    """What a new store tells once everything is in it."""
    scene.database = scene.path / name / "memory.db"
    scene.store = scene.open()
    report = scene.ingest(workers=workers, batch_bytes=batch_bytes)
    assert (report.files, report.changed, report.problems) == (FILES, FILES, [])
    return everything(scene)


@pytest.mark.parametrize("batch_bytes", [4000, 1 << 20])
def test_what_is_stored_is_the_same(scene, monkeypatch, batch_bytes):
    monkeypatch.setattr(ahead, "LEAST_BYTES", 0)
    one, several = take_in(scene, "one", 0, batch_bytes), take_in(scene, "several", 3, batch_bytes)
    assert one == several
    assert [item.error for item in several if item.tool] == ["Exit code 2: no rule"] * FILES


def test_what_forks_read_is_stored_as_well(scene):
    """The database is open when they are forked, and must bear that."""
    one = take_in(scene, "one", 0)
    scene.database = scene.path / "forks" / "memory.db"
    scene.database.parent.mkdir()
    subprocess.run([sys.executable, "-c", TAKES_IN, str(scene.root), str(scene.database)], check=True)
    scene.store = scene.open()
    assert everything(scene) == one
    assert scene.store.connection.execute("PRAGMA integrity_check").get == "ok"


def test_it_is_the_other_processes_that_read(scene, monkeypatch):
    monkeypatch.setattr(ahead, "LEAST_BYTES", 0)
    read: list[int] = []
    monkeypatch.setattr(
        Extractor, "read", lambda self, start, *rest, by=Extractor.read: (read.append(start), by(self, start, *rest))[1]
    )
    take_in(scene, "several", 2, 1 << 20)
    assert read == [0]  # the first file alone, while they start


@pytest.mark.parametrize("program", [DIES_AT_ONCE, SENDS_HALF])
def test_what_a_process_leaves_is_read_here(scene, monkeypatch, program):
    one = take_in(scene, "one", 0)
    monkeypatch.setattr(ahead, "LEAST_BYTES", 0)
    monkeypatch.setattr(reading_start, "_PROGRAM", program)
    assert take_in(scene, "several", 2) == one


def test_where_no_process_can_be_started_everything_is_read_here(scene, monkeypatch):
    one = take_in(scene, "one", 0)

    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(ahead, "LEAST_BYTES", 0)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert take_in(scene, "several", 2) == one


def test_of_one_large_file_what_follows_is_read_while_the_beginning_is_stored(scene, monkeypatch):
    one = take_in(scene, "one", 0)
    for number in range(1, FILES):
        scene.file(f"session-{number}").unlink()
    monkeypatch.setattr(ahead, "LEAST_BYTES", 0)
    monkeypatch.setattr(Extractor, "read", None)  # not in this process
    scene.database = scene.path / "large" / "memory.db"
    scene.store = scene.open()
    assert scene.ingest(workers=2, batch_bytes=4000).entries == 83
    assert everything(scene) == one[: len(everything(scene))]


def test_a_file_that_was_replaced_since_is_read_here(scene, monkeypatch):
    monkeypatch.setattr(ahead, "LEAST_BYTES", 0)
    monkeypatch.setattr(ahead, "WAITING_PIECES", 100)
    ingestion = Ingestion(scene.store, workers=2)
    last = scene.file(f"session-{FILES - 1}")
    found = SourceDirectory(str(scene.root)).files()

    def replace_the_last(path: str, size: int) -> None:
        if path == found[0].path and not size:
            time.sleep(1)  # all are read ahead by now
            last.rename(scene.path / "aside")
            last.write_bytes(lines(user("something else"), assistant("entirely")))

    ingestion._progress = replace_the_last
    ingestion.take(found)
    assert scene.texts()[-2:] == ["something else", "entirely"]
    assert f"question {FILES - 1}.0" not in scene.texts()


def test_files_may_be_passed_over(scene, monkeypatch):
    monkeypatch.setattr(ahead, "LEAST_BYTES", 0)
    found = SourceDirectory(str(scene.root)).files()
    with ReadAhead(found, "", 4000, 2) as reading:
        status = os.stat(found[5].path)
        pieces = list(reading.extracts(found[5], status.st_ino, status.st_size))
    assert pieces == list(read_pieces(found[5].path, "", 4000))
    assert len(pieces) > 1


def test_a_piece_is_the_same_on_the_other_side(scene):
    for number, piece in enumerate(read_pieces(str(scene.file("session-0")), "", 4000)):
        assert unpacked(packed(number, piece)) == (number, piece)


@pytest.mark.skipif(os.name == "nt", reason="looks for processes by signals")
@pytest.mark.parametrize(("way", "kind"), [("forks", "Fork"), ("interpreters", "Interpreter")])
def test_the_processes_end_when_the_one_that_started_them_is_killed(scene, way, kind):
    if way == "forks" and not sys.platform.startswith("linux"):
        pytest.skip("nothing is forked here")
    for number in range(FILES):  # more than a pipe holds
        with scene.file(f"session-{number}").open("ab") as file:
            file.write(lines(*[user(f"{turn} " * 2000) for turn in range(100)]))
    command = [sys.executable, "-c", HOLDS_THE_PIPES, str(scene.root), way]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        started = [int(number) for number in process.stdout.readline().split()]
        assert process.stdout.readline().strip() == kind
        time.sleep(0.5)
        assert all(map(is_running, started))
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while any(map(is_running, started)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process_id}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_of_a_usual_line_of_results_only_these_are_decoded():
    decoded: list[bytes] = []

    def decode(part: bytes) -> tuple[list[object], int]:
        decoded.append(part)
        return [[{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]], 0

    usual = (
        b'{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":'
        b'[{"tool_use_id":"t1","type":"tool_result","content":"x"}]},"uuid":"u","toolUseResult":{"stdout":"x"}}'
    )
    assert claude.results_in(usual, decode) == [("t1", False, "x")]
    assert decoded == [b'[{"tool_use_id":"t1","type":"tool_result","content":"x"}]']
    glued = usual + usual
    for other in (glued, usual.replace(b"false", b"true"), usual.replace(b'"uuid"', b'"id"'), lines(tool_result())):
        assert claude.results_in(other, decode) is None
