"""Much new content is read by other processes, with the same result, whatever happens to these."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from pathlib import Path

import pytest
from records import assistant, exchange, lines, tool_result, user
from store_scene import Scene

from session_memory.common.system.json import decode_line
from session_memory.history.store.ingest import _read_ahead as read_ahead
from session_memory.history.store.ingest import ingestion as ingestion_module
from session_memory.history.store.ingest._read_ahead import ReadAhead, Span, read_spans
from session_memory.history.store.ingest.extract import Extractor
from session_memory.history.store.ingest.ingestion import Ingestion
from session_memory.history.store.ingest.sources import SourceDirectory
from session_memory.history.store.ingest.values import Batch, FileState
from session_memory.sessions.runtimes.claude import RUNTIME as CLAUDE
from session_memory.sessions.runtimes.records import CALLS, MESSAGES, RESULTS, CallResult
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.settings.forgotten import add, session_tombstone
from session_memory.sessions.transcripts.marks import key_of
from session_memory.sessions.transcripts.reader import TranscriptReader

ROOT = Path(__file__).resolve().parents[3]
FILES = 7
FORGOTTEN_UNTIL = 1_790_000_000
# Both are run as programs of their own: what runs the tests may have several threads, and then
# nothing is forked.
HOLDS_THE_POOL = f"""
import sys, threading, time
sys.path[:0] = [{str(ROOT)!r}]
from session_memory.history.store.ingest import _read_ahead as read_ahead
from session_memory.history.store.ingest.sources import SourceDirectory
read_ahead.LEAST_BYTES = read_ahead.TASK_BYTES = 0
if __name__ == "__main__":
    if sys.argv[2] == "spawn":
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    held = read_ahead.ReadAhead(SourceDirectory(sys.argv[1]).files(), "", 2000, 2)
    assert sys.modules["session_memory.sessions.runtimes.hermes.records"]  # loaded for both
    held._futures[0].result()
    print(held._pool._mp_context.get_start_method(), *held._pool._processes, flush=True)
    time.sleep(60)
"""
# There is no guard: `if __name__ == "__main__"`.
TAKES_IN = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}]
from session_memory.history.store.ingest import _read_ahead as read_ahead
from session_memory.history.store.ingest.ingestion import Ingestion
from session_memory.history.store.ingest.sources import SourceDirectory
from session_memory.history.store.sqlite.engine import SqliteStore
print("begun")
read_ahead.LEAST_BYTES = 0
store = SqliteStore(sys.argv[2])
for number in range(2):
    Ingestion(store, workers=2, batch_bytes=4000).scan(SourceDirectory(sys.argv[1]))
store.close()
"""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Files of several extracts each, one of which brings the result of a call in the one before."""
    scene = Scene(tmp_path)
    for number in range(FILES):
        call = assistant(("Bash", {"command": f"make {number}"}))
        call_id = call["message"]["content"][0]["id"]
        said = [
            record
            for turn in range(40)
            for record in exchange(f"question {number}.{turn}", "an answer " * 9)
        ]
        told = [
            {
                "type": "tool_result",
                "tool_use_id": call_id,
                "content": "Exit code 2\nno rule",
                "is_error": True,
            }
        ]
        scene.write(f"session-{number}", user("begin"), call, *said, user(told), user("end"))
    return scene


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes read, however little there is; each file is a task of its own."""
    monkeypatch.setattr(read_ahead, "LEAST_BYTES", 0)
    monkeypatch.setattr(read_ahead, "TASK_BYTES", 0)


def everything(scene: Scene) -> list[object]:
    return [
        item._replace(id=0)
        for conversation in scene.conversations()
        for item in scene.items(conversation)
    ]


def take_in(scene: Scene, name: str, workers: int, batch_bytes: int = 4000) -> list[object]:
    """What a new store holds once everything is in it."""
    scene.database = scene.path / name / "memory.db"
    scene.store = scene.open()
    report = scene.ingest(workers=workers, batch_bytes=batch_bytes)
    assert (report.files, report.changed, report.problems) == (FILES, FILES, [])
    return everything(scene)


@pytest.mark.parametrize(
    ("batch_bytes", "task_bytes"), [(4000, 0), (4000, 10_000), (1 << 20, 1 << 20)]
)
def test_what_is_stored_is_the_same(scene, always, monkeypatch, batch_bytes, task_bytes):
    monkeypatch.setattr(read_ahead, "TASK_BYTES", task_bytes)
    one, several = take_in(scene, "one", 0, batch_bytes), take_in(scene, "several", 3, batch_bytes)
    assert one == several
    assert [item.error for item in several if item.tool] == ["Exit code 2: no rule"] * FILES


@pytest.mark.skipif(
    not sys.platform.startswith("linux"),
    reason="readers are forked on Linux only, elsewhere started anew",
)
def test_what_forks_read_is_stored_as_well_and_a_caller_s_script_without_a_guard_is_not_run_anew(
    scene,
):
    """The database is open when they are forked, and must bear that."""
    one = take_in(scene, "one", 0)
    script = scene.path / "script.py"
    script.write_text(TAKES_IN)
    scene.database = scene.path / "script" / "memory.db"
    scene.database.parent.mkdir()
    command = [sys.executable, str(script), str(scene.root), str(scene.database)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("begun\n", "")
    scene.store = scene.open()
    assert everything(scene) == one
    assert scene.store.connection.execute("PRAGMA integrity_check").get == "ok"


def test_it_is_the_other_processes_that_read(scene, always, monkeypatch):
    monkeypatch.setattr(Extractor, "read", None)  # in this process; the others are new interpreters
    monkeypatch.setattr(read_ahead, "_THREADS", "/nowhere")  # then none is forked
    take_in(scene, "several", 2, 1 << 20)


def test_what_killed_processes_leave_is_read_here(scene, always, monkeypatch):
    one = take_in(scene, "one", 0)
    results = []

    def dies(future: Future, timeout: float | None = None) -> object:
        results.append(future)
        if len(results) == 3:
            raise BrokenProcessPool("a process was killed")
        return result(future, timeout)

    result = Future.result
    monkeypatch.setattr(Future, "result", dies)
    assert take_in(scene, "several", 2) == one


def test_where_no_process_can_be_started_everything_is_read_here(scene, always, monkeypatch):
    one = take_in(scene, "one", 0)

    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(ProcessPoolExecutor, "submit", refuse)
    assert take_in(scene, "several", 2) == one


def test_of_one_large_file_what_follows_is_read_while_the_beginning_is_stored(
    scene, always, monkeypatch
):
    one = take_in(scene, "one", 0)
    for number in range(1, FILES):
        scene.file(f"session-{number}").unlink()
    monkeypatch.setattr(Extractor, "read", None)  # not in this process
    monkeypatch.setattr(read_ahead, "_THREADS", "/nowhere")  # then none is forked
    scene.database = scene.path / "large" / "memory.db"
    scene.store = scene.open()
    assert scene.ingest(workers=2, batch_bytes=4000).entries == 83
    assert everything(scene) == one[: len(everything(scene))]


def test_a_file_that_was_replaced_since_is_read_here(scene, always, monkeypatch):
    monkeypatch.setattr(read_ahead, "WAITING_TASKS", 100)
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


def test_files_may_be_passed_over(scene, always):
    found = SourceDirectory(str(scene.root)).files()
    with ReadAhead(found, "", 4000, 2) as reading:
        status = os.stat(found[5].path)
        extracts = list(reading.extracts(found[5], status.st_ino, status.st_size))
    assert [one.reached for one in extracts][-1] == status.st_size
    assert len(extracts) > 1


def test_another_process_returns_an_extract_as_it_read_it(scene, always):
    edit = {"file_path": "/p/a.py", "old_string": "", "new_string": "a line that is long enough"}
    call = assistant("I edit \ud83d it", ("Edit", edit), ("Bash", {"command": "make"}))
    answers = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "done"}
        for block in call["message"]["content"][1:2]
    ]
    late = {"type": "tool_result", "tool_use_id": "toolu_before", "content": "x", "is_error": True}
    path = scene.write("edits", user("begin"), call, user(answers), user([late]), user("end"))
    [file] = [found for found in SourceDirectory(str(scene.root)).files() if "edits" in found.path]
    status, key = os.stat(path), b"k" * 32
    with ReadAhead([file], "", 1 << 20, 2, key) as reading:
        [extract] = reading.extracts(file, status.st_ino, status.st_size)
    [here] = read_spans([Span(str(path), 0, 0)], "", key)
    assert repr(extract) == repr(here)  # with the types, which are equal to plain tuples
    edited, run = here.entries[1].tools
    assert (edited.ended.outcome, len(edited.lines), run.ended) == ("ok", 1, None)
    # of the call, and of the files that it may have patched
    assert here.outcomes[0][0] == key_of("toolu_before")
    assert {outcome.outcome for _, outcome in here.outcomes} == {"error"}


def test_spans_hold_each_line_once_wherever_they_are_cut(scene):
    long, short = scene.file("session-0"), scene.write("short", user("x"), user("y"))
    for path, limits in ((long, (700, 4000, long.stat().st_size - 1)), (short, (1,))):
        size = path.stat().st_size
        [whole] = read_spans([Span(str(path), 0, 0)], "")
        for limit in limits:
            ends = [start + limit if start + limit < size else 0 for start in range(0, size, limit)]
            parts = read_spans(
                [Span(str(path), at * limit, end) for at, end in enumerate(ends)], ""
            )
            assert [entry.offset for part in parts for entry in part.entries] == [
                one.offset for one in whole.entries
            ]
            assert parts[-1].reached == size


def test_a_secret_is_redacted_wherever_its_file_is_cut(tmp_path: Path) -> None:
    body = [f"{number}Qx7b" * 16 for number in range(4)]
    key = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----"])
    command = {"command": f"printf '{key}' > id_rsa; export GITHUB_TOKEN=ghp_{'a1B2' * 9}"}
    call = {"type": "tool_use", "id": "c", "name": "Bash", "input": command}
    failed = {
        "type": "tool_result",
        "tool_use_id": "c",
        "is_error": True,
        "content": f"error: {key}",
    }
    said = [
        *exchange(f"Here is it:\n{key}\nKeep it", "I keep it."),
        assistant(call),
        user([failed]),
    ]
    path = tmp_path / "session.jsonl"
    path.write_bytes(lines(*said))
    size = path.stat().st_size
    [whole] = read_spans([Span(str(path), 0, 0)], "")
    assert whole is not None
    texts = [entry.text for entry in whole.entries]
    assert "[redacted: " in texts[0]
    assert texts[0].endswith("Keep it")
    for cut in range(1, size, 7):
        extracts = read_spans([Span(str(path), 0, cut), Span(str(path), cut, 0)], "")
        given = [extract for extract in extracts if extract is not None]
        assert [entry.text for extract in given for entry in extract.entries] == texts
        assert not any(part in str(given) for part in [*body, "a1B2"])


@pytest.mark.skipif(os.name == "nt", reason="looks for processes by signals")
@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_the_processes_end_when_the_one_that_started_them_is_killed(scene, way):
    if way == "fork" and not sys.platform.startswith("linux"):
        pytest.skip("readers are forked on Linux only, elsewhere started anew")
    program = scene.path / "holds.py"
    program.write_text(HOLDS_THE_POOL)
    with subprocess.Popen(
        [sys.executable, str(program), str(scene.root), way], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        kind, *started = process.stdout.readline().split()
        assert (kind, len(started)) == (way, 2)
        assert all(is_running(int(number)) for number in started)
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while any(is_running(int(number)) for number in started):
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
    assert CLAUDE.records.results_in(usual, decode) == [CallResult("t1", False, "x")]
    assert decoded == [b'[{"tool_use_id":"t1","type":"tool_result","content":"x"}]']
    glued = usual + usual
    for other in (
        glued,
        usual.replace(b"false", b"true"),
        usual.replace(b'"uuid"', b'"id"'),
        lines(tool_result()),
    ):
        assert CLAUDE.records.results_in(other, decode) is None


PI_RESULT = (
    b'{"type":"message","id":"a","parentId":"b","message":{"role":"toolResult","toolCallId":"t1",'
    b'"toolName":"bash","content":[{"type":"text","text":"x"}],"isError":false}}'
)
QWEN_RESULT = (
    b'{"uuid":"a","sessionId":"s","type":"tool_result","message":{"role":"user","parts":'
    b'[{"functionResponse":{"id":"t1","name":"edit","response":{"output":"x"}}}]},"toolCallResult":{}}'
)


@pytest.mark.parametrize(
    ("name", "usual", "others"),
    [
        (
            "pi",
            PI_RESULT,
            [
                PI_RESULT + PI_RESULT,
                PI_RESULT.replace(b'"bash"', b'"ask_user"'),
                PI_RESULT.replace(b'"isError"', b'"nestedCalls":{"calls":[{"id":"n"}]},"isError"'),
                PI_RESULT.replace(b'"isError"', b'"nestedCalls": {"calls":[{"id":"n"}]},"isError"'),
                PI_RESULT.replace(b"toolResult", b"user"),
            ],
        ),
        (
            "qwen",
            QWEN_RESULT,
            [
                QWEN_RESULT + QWEN_RESULT,
                QWEN_RESULT.replace(b'"edit"', b'"ask_user_question"'),
                QWEN_RESULT.replace(
                    b'"type":"tool_result"', b'"isSidechain":true,"type":"tool_result"'
                ),
                QWEN_RESULT.replace(b"tool_result", b"user"),
            ],
        ),
    ],
)
def test_a_line_with_only_a_result_is_read_as_any_other_but_sooner(name, usual, others):
    records = runtime(name).records
    [record] = decode_line(usual)[0]
    found = records.results_in(usual, decode_line)
    assert found == records.events(record, 0, MESSAGES | CALLS | RESULTS)
    assert [result.call_id for result in found] == ["t1"]
    for other in others:
        assert records.results_in(other, decode_line) is None


def test_a_process_looks_for_the_branches_of_a_large_file_once(tmp_path, monkeypatch):
    path = tmp_path / "long.jsonl"
    header = {"type": "session", "version": 3, "id": "a" * 8, "cwd": "/srv/app"}
    said = [
        {
            "type": "message",
            "id": f"{number:08x}",
            "parentId": f"{number - 1:08x}" if number else None,
            "message": {"role": "user", "content": f"question {number}"},
        }
        for number in range(200)
    ]
    left_out = {**said[-1], "id": "f" * 8, "message": {"role": "user", "content": "taken back"}}
    path.write_bytes(lines(header, *said[:-1], left_out, said[-1]))
    sought: list[int] = []
    off_branch = TranscriptReader.offsets_off_branch

    def counted(reader: TranscriptReader, descriptor: int, size: int) -> set[int]:
        sought.append(size)
        return off_branch(reader, descriptor, size)

    monkeypatch.setattr(TranscriptReader, "offsets_off_branch", counted)
    size, step = path.stat().st_size, 2000
    cut = [
        Span(str(path), start, start + step if start + step < size else 0)
        for start in range(0, size, step)
    ]
    texts = [
        entry.text
        for span in cut
        for extract in read_spans([span], "")
        if extract is not None
        for entry in extract.entries
    ]
    assert texts == [f"question {number}" for number in range(200)]
    assert sought == [size]


def test_a_large_file_is_read_in_small_spans(scene, always, monkeypatch):
    monkeypatch.setattr(read_ahead, "SPAN_BYTES", 3000)
    with ReadAhead(SourceDirectory(str(scene.root)).files(), "", 32 << 20, 2) as ahead:
        sizes = [span.stop - span.start for task in ahead._tasks for span in task if span.stop]
    assert len(sizes) > FILES
    assert set(sizes) == {3000}


def test_the_times_of_a_session_are_the_same_however_it_is_divided(scene, always):
    said = [exchange(f"question {number}", "yes", at=2e9 - 60 * number) for number in range(99)]
    scene.write("backwards", *[record for each in said for record in each])
    times = []
    for batch_bytes in (1 << 20, 4000):
        scene.database = scene.path / str(batch_bytes) / "memory.db"
        scene.store = scene.open()
        scene.ingest(workers=2, batch_bytes=batch_bytes)
        (state,) = [
            state
            for key, state in scene.store.file_states("").items()
            if key.endswith("backwards.jsonl")
        ]
        times.append((state.first_entry_timestamp, state.last_entry_timestamp))
    assert times[0] == times[1]


def tables(
    scene: Scene, name: str, batch_bytes: int, *, is_forgotten: bool = False
) -> list[object]:
    """All rows of a new store, with the transactions that it took."""
    scene.database = scene.path / name / "memory.db"
    scene.store = scene.open()
    writes: list[int] = []
    write = scene.store.write

    def counted(batches: list[Batch]) -> list[FileState | None]:
        writes.append(len(batches))
        return write(batches)

    scene.store.write = counted
    ingestion = Ingestion(scene.store, batch_bytes=batch_bytes)
    if is_forgotten:  # by another process, after this one began
        until = int((FORGOTTEN_UNTIL + 1) * 1000)
        add(scene.store.path, [session_tombstone("", "session-0", until)])
    ingestion.scan(SourceDirectory(str(scene.root)))
    assert ingestion.report.problems == []
    names = ("transcript_entries", "tool_uses", "conversations", "file_states", "item_keys")
    rows = [scene.store.rows(f"SELECT * FROM memory_{name} ORDER BY id") for name in names]
    return [len(writes), *rows]


def test_parts_of_a_file_are_stored_in_one_transaction(scene, monkeypatch):
    monkeypatch.setattr(ingestion_module, "SPAN_BYTES", 2000)
    one_by_one, together = tables(scene, "one", 2000), tables(scene, "together", 1 << 20)
    assert one_by_one[1:] == together[1:]
    assert one_by_one[0] > FILES
    assert together[0] == 1


def test_a_transaction_has_little_text(scene, monkeypatch):
    monkeypatch.setattr(ingestion_module, "SPAN_BYTES", 2000)
    monkeypatch.setattr(ingestion_module, "BATCH_CHARACTERS", 5000)
    assert tables(scene, "little", 1 << 20)[0] > 2


def test_a_transaction_has_few_written_lines(scene, monkeypatch):
    monkeypatch.setattr(ingestion_module, "SPAN_BYTES", 2000)
    monkeypatch.setattr(ingestion_module, "BATCH_CHARACTERS", 50_000)
    assert tables(scene, "text", 1 << 20)[0] == 1
    code = "\n".join(f"the line number {number} = value" for number in range(100))
    calls = [assistant(("Write", {"file_path": f"/srv/{at}.py", "content": code})) for at in "abc"]
    scene.write("session-0", user("begin"), *calls * 10)
    assert tables(scene, "lines", 1 << 20)[0] > 1


def test_a_session_that_is_forgotten_while_it_is_read_leaves_as_much_in_one_transaction(
    scene, monkeypatch
):
    monkeypatch.setattr(ingestion_module, "SPAN_BYTES", 2000)
    said = [user(f"number {at}", at=FORGOTTEN_UNTIL - 50 + at) for at in range(100)]
    scene.write("session-0", {"type": "summary", "summary": "A title", "leafUuid": "x"}, *said)
    one_by_one = tables(scene, "one", 2000, is_forgotten=True)
    together = tables(scene, "together", 1 << 20, is_forgotten=True)
    assert one_by_one[1:] == together[1:]
    texts = scene.texts()
    assert "number 50" not in texts
    assert "number 52" in texts
