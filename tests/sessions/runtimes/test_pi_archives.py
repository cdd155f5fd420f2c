"""Archives in the real Pi: what is kept, when, and that pi goes on where nothing can be."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clients.npm import NpmPlace
from clients.pi import PACKAGE, Pi, records
from fakes.fake_llm import FakeLLM
from records import register

from session_memory.history.archives.format import facts_in, messages_in
from session_memory.history.store.sqlite.engine import SqliteStore


@pytest.fixture
def pi(tmp_path: Path, npm_place: NpmPlace) -> Iterator[Pi]:
    """The real pi with our package; it compacts what is older than the last message."""
    npm_place(PACKAGE)
    with FakeLLM() as model:
        pi = Pi(tmp_path, model)
        pi.use_package()
        pi.configure(compaction={"keepRecentTokens": 1})
        yield pi


def archives(pi: Pi) -> list[Path]:
    return sorted(pi.home.glob(".session-memory/conversations/*.md"))


def said(archive: Path) -> list[str]:
    """The messages of an archive; '' stands for a compaction."""
    return [text for _, text, _ in messages_in(archive.read_text())]


def faults(pi: Pi) -> list[str]:
    log = pi.state_dir() / "hook.log"
    return log.read_text().splitlines() if log.exists() else []


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Archives are written by a process that pi does not wait for."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, f"{what}: it did not happen"
        time.sleep(0.05)


def compactions(pi: Pi) -> int:
    return [record["type"] for path in pi.sessions() for record in records(path)].count(
        "compaction"
    )


def test_a_compaction_keeps_everything_that_was_said_before_it(pi: Pi) -> None:
    with pi.rpc() as rpc:
        rpc.prompt("plan the garden")
        rpc.prompt('TOOL bash {"command": "echo hello"}')
        rpc.send("compact")
        wait_for(lambda: archives(pi), "the archive")
        rpc.prompt("and the roses?")
        assert rpc.errors == ""
    assert compactions(pi) == 1
    (archive,) = archives(pi)
    before = said(archive)[:5]
    assert before[0] == "plan the garden"
    assert before[1].endswith("plan the garden")
    assert before[2:4] == ['TOOL bash {"command": "echo hello"}', "calling bash"]
    assert before[4].endswith("tool done")
    facts = facts_in(archive.read_text()[-4096:])
    assert facts is not None
    assert (facts["runtime"], facts["cwd"]) == ("pi", str(pi.project))
    assert facts["session"] == pi.sessions()[0].stem.partition("_")[2]
    assert faults(pi) == []


def test_one_archive_holds_what_was_said_before_and_after_a_compaction_until_a_new_session(
    pi: Pi,
) -> None:
    with pi.rpc() as rpc:
        rpc.prompt("plan the garden")
        rpc.prompt("buy the seeds")
        rpc.send("compact", customInstructions="keep the roses")
        wait_for(lambda: archives(pi), "the archive")
        rpc.prompt("water the roses")
        rpc.send("new_session")
        (archive,) = archives(pi)
        wait_for(lambda: "water the roses" in said(archive), "the fuller archive")
        rpc.prompt("something else")
        assert rpc.errors == ""
    assert archives(pi) == [archive]
    messages = said(archive)
    assert [text for text in messages if "ECHO" not in text] == [
        "plan the garden",
        "buy the seeds",
        "",
        "water the roses",
    ]
    assert len(messages) == 7
    assert "made-up summary" not in archive.read_text()


def test_the_summariser_is_told_nothing_of_ours(pi: Pi) -> None:
    with pi.rpc() as rpc:
        rpc.prompt("plan the garden")
        rpc.prompt("buy the seeds")
        rpc.send("compact")
        wait_for(lambda: archives(pi), "the archive")
    (request,) = [request for request in pi.model.requests if request.kind == "summary"]
    assert "plan the garden" in request.text
    assert "conversations/" not in request.text


def test_an_automatic_compaction_keeps_the_conversation(pi: Pi) -> None:
    with pi.rpc() as rpc:
        rpc.prompt("plan the garden")
        rpc.prompt("BIGUSAGE")
        wait_for(lambda: archives(pi), "the archive")
    assert compactions(pi) == 1
    assert said(archives(pi)[0])[0] == "plan the garden"


def test_an_agent_home_keeps_the_conversation_of_a_named_session_itself(pi: Pi) -> None:
    register(pi.project, pi.home)
    sessions_dir = pi.project / ".session-memory" / "pi-sessions" / "main"
    with pi.rpc("--session-dir", str(sessions_dir)) as rpc:
        rpc.prompt("plan the garden")
        rpc.send("new_session")
        wait_for(lambda: [*pi.project.glob("conversations/*.md")], "the archive")
    assert archives(pi) == []


def test_pi_compacts_and_goes_on_where_archives_cannot_be_written(pi: Pi) -> None:
    (pi.home / ".session-memory").mkdir()
    (pi.home / ".session-memory" / "conversations").write_text("in the way")
    with pi.rpc() as rpc:
        rpc.prompt("plan the garden")
        rpc.prompt("buy the seeds")
        rpc.send("compact")
        wait_for(lambda: len(faults(pi)) == 1, "the line in the log")
        rpc.prompt("and the roses?")
        rpc.send("new_session")
        wait_for(lambda: len(faults(pi)) == 2, "the line in the log")
        assert rpc.prompt("something else").request is not None
        assert rpc.errors == ""
        assert rpc.close() == 0
    assert compactions(pi) == 1
    assert (pi.home / ".session-memory" / "conversations").read_text() == "in the way"
    assert all("conversations" in fault for fault in faults(pi))


def test_nothing_is_kept_of_a_session_that_pi_does_not_keep(pi: Pi) -> None:
    with pi.rpc("--no-session") as rpc:
        rpc.prompt("plan the garden")
        rpc.prompt("buy the seeds")
        rpc.send("compact")
        rpc.send("new_session")
        assert rpc.prompt("something else").request is not None
        assert rpc.errors == ""
    assert pi.sessions() == []
    with pi.rpc() as rpc:
        rpc.prompt("water the roses")
        rpc.send("new_session")
        # by then, the other would be there too
        wait_for(lambda: archives(pi), "the archive of what is kept")
    assert [said(archive)[0] for archive in archives(pi)] == ["water the roses"]
    assert faults(pi) == []


def test_the_entry_hears_of_a_compaction_and_of_the_end_and_cannot_cancel_them(
    pi: Pi, tmp_path: Path
) -> None:
    heard = tmp_path / "heard"
    archive = f"import sys\nopen({str(heard)!r}, 'a').write(sys.stdin.read() + '\\n')\nprint('{{\"cancel\": true}}')\n"
    pi.configure(packages=[])
    extension = pi.copy_extension(pi_prompt="", pi_archive=archive)
    with pi.rpc("--extension", str(extension)) as rpc:
        rpc.prompt("one")
        rpc.prompt("BIGUSAGE")
        rpc.prompt("two")
    (path,) = pi.sessions()
    assert compactions(pi) == 1
    events = [json.loads(line) for line in heard.read_text().splitlines()]
    assert [event["hook_event_name"] for event in events] == [
        "session_before_compact",
        "session_shutdown",
    ]
    for event in events:
        assert event.pop("reason")
        del event["hook_event_name"]
        assert event == {
            "runtime": "pi",
            "session_id": path.stem.partition("_")[2],
            "transcript_path": str(path),
            "session_dir": str(path.parent),
            "cwd": str(pi.project),
        }


def test_what_was_said_goes_into_the_store_when_a_session_ends_and_when_one_starts(pi: Pi) -> None:
    def runs() -> int:
        path = pi.state_dir() / "upkeep.json"
        return (
            sum(bool(run["ended"]) for run in json.loads(path.read_text())["runs"])
            if path.exists()
            else 0
        )

    pi.run("plan the garden")
    wait_for(lambda: runs() == 1, "a run of upkeep")
    (pi.state_dir() / "upkeep.lock").unlink()
    with pi.rpc() as rpc:
        wait_for(lambda: runs() == 2, "a run as the session started")
        assert rpc.errors == ""
    store = SqliteStore(str(pi.home / ".session-memory/store/memory.db"))
    try:
        assert store.counts().entries >= 2
    finally:
        store.close()
    assert faults(pi) == []
