"""The real OpenCode and Kilo with our plugin file, and a fake model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from clients.npm import NpmPlace
from clients.others import KILO, OPENCODE, Kilo, OpenCode, OpenCodeServer
from fakes.fake_llm import FakeLLM
from hooks_scene import run
from install_machine import PYTHON, REPOSITORY
from records import assistant, new_id, user, write

from session_memory.sessions.runtimes.claude import encode_cwd
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.entries import Entry
from session_memory.sessions.transcripts.reader import TranscriptReader

MARK = "[Session Activity]"


@pytest.fixture(params=[(OpenCode, OPENCODE), (Kilo, KILO)], ids=["opencode", "kilo"])
def opencode(
    request: pytest.FixtureRequest, tmp_path: Path, npm_place: NpmPlace
) -> Iterator[OpenCode]:
    program_class, package = request.param
    with FakeLLM() as model:
        program: OpenCode = program_class(tmp_path, npm_place(package), model)
        program.add_plugin(REPOSITORY)
        program.environment["SESSION_MEMORY_PYTHON"] = PYTHON
        yield program


def claude_has(opencode: OpenCode, question: str, *tools: tuple[str, dict[str, str]]) -> None:
    """Claude Code did something in the same project."""
    folder = opencode.home / ".claude" / "projects" / encode_cwd(str(opencode.project))
    fields = {"cwd": str(opencode.project), "at": time.time()}
    write(
        folder / f"{new_id()}.jsonl", user(question, **fields), assistant(*tools, "Done.", **fields)
    )


def told_in(opencode: OpenCode) -> list[str]:
    """What was told with the prompts in the last request; one for a title offers no tools."""
    requests = [json.loads(request) for request in opencode.requests()]
    messages = [one for one in requests if one.get("tools")][-1]["messages"]
    texts = [
        part["text"]
        for one in messages
        if one["role"] == "user"
        for part in parts_of(one["content"])
    ]
    return [text for text in texts if MARK in text]


def parts_of(content: str | list[dict[str, str]]) -> list[dict[str, str]]:
    """The texts of a message, which are one string where there is only one."""
    return [{"text": content}] if isinstance(content, str) else content


def mirrored(opencode: OpenCode) -> list[dict[str, object]]:
    """What the mirrors of its sessions hold, once a prompt or upkeep has read the database."""
    paths = (opencode.home / ".session-memory" / "state" / opencode.NAME).rglob("*.jsonl")
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_a_prompt_is_told_once_and_the_next_one_what_is_new(opencode: OpenCode) -> None:
    claude_has(opencode, "tidy the docs")
    opencode.run("plan the garden")
    [told] = told_in(opencode)
    assert '- "tidy the docs" (Claude Code, ' in told
    opencode.run("--continue", "go on")
    assert told_in(opencode) == [told]
    claude_has(opencode, "mend the door")
    opencode.run("--continue", "and now?")
    assert "mend the door" in told_in(opencode)[1]


@pytest.mark.slow
def test_the_result_of_an_edit_says_who_edited_the_file_and_a_command_knows_its_session(
    opencode: OpenCode,
) -> None:
    path = opencode.project / "app.py"
    path.write_text("1\n")
    opencode.run("TOOL read " + json.dumps({"filePath": str(path)}))
    path.write_text("2\n")
    claude_has(
        opencode,
        "mend it",
        ("Edit", {"file_path": str(path), "old_string": "1", "new_string": "2"}),
    )
    write_it = {"filePath": str(path), "oldString": "2", "newString": "3"}
    opencode.run("--continue", "TOOL edit " + json.dumps(write_it))
    assert "! app.py: edited " in opencode.requests()[-1]
    opencode.run(
        "--continue",
        f'TOOL bash {{"command": "echo id=${opencode.NAME.upper()}_SESSION_ID; exit 3",'
        ' "description": "x"}',
    )
    header = runtime(opencode.NAME).records.HEADER
    (session,) = {str(record["id"]) for record in mirrored(opencode) if record["type"] == header}
    assert f"id={session}" in opencode.requests()[-1]
    opencode.run("--continue", "done")
    kinds = {
        str(data["tool"]): data["state"]
        for record in mirrored(opencode)
        if (data := tool_in(record))
    }
    assert kinds["bash"]["metadata"] == {"exit": 3}
    assert set(kinds) == {"read", "edit", "bash"}


def tool_in(record: dict[str, object]) -> dict[str, dict[str, object]]:
    """The call in a record; empty for any other."""
    data = record.get("data")
    return data if isinstance(data, dict) and data.get("type") == "tool" else {}


@pytest.mark.slow
def test_a_sub_agent_is_told_nothing_and_is_none_of_the_sessions(opencode: OpenCode) -> None:
    claude_has(opencode, "tidy the docs")
    task = {"description": "count", "prompt": "count the lines", "subagent_type": "general"}
    opencode.run("TOOL task " + json.dumps(task))
    last = [json.loads(request)["messages"][-1] for request in opencode.requests()]
    asked = [str(one["content"]) for one in last if one["role"] == "user"]
    [of_child] = [text for text in asked if "count the lines" in text and "TOOL task" not in text]
    assert MARK not in of_child
    opencode.run("--continue", "go on")
    folder = next((opencode.home / ".session-memory/state" / opencode.NAME).glob("[!.]*/"))
    assert len(list(folder.glob("*.jsonl"))) == 1
    assert len(list(folder.glob("*/*.jsonl"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", ["#!/bin/sh\nexec sleep 60\n", "#!/bin/sh\nexit 1\n", "#!/bin/sh\necho {\n", ""]
)
def test_whatever_becomes_of_a_hook_the_prompt_is_answered(
    opencode: OpenCode, tmp_path: Path, script: str
) -> None:
    python = tmp_path / "python"
    if script:
        python.write_text(script)
        python.chmod(0o755)
    opencode.environment["SESSION_MEMORY_PYTHON"] = str(python)
    assert "plan the garden" in opencode.run("plan the garden")
    with closing(os.popen("ps -eo args")) as processes:
        assert str(python) not in processes.read()


@pytest.mark.slow
def test_what_is_undone_copied_by_a_fork_or_compacted_is_read_and_told_as_it_is(
    opencode: OpenCode,
) -> None:
    with OpenCodeServer(opencode) as server:
        session = str(server.post("/session", {"title": "garden"})["id"])
        server.say(session, "plant a pear")
        plum = server.say(session, "plant a plum")
        assert conversation(opencode, session) == ["plant a pear", "ECHO", "plant a plum", "ECHO"]
        server.post(f"/session/{session}/revert", {"messageID": plum})
        assert conversation(opencode, session) == ["plant a pear", "ECHO"]
        server.post(f"/session/{session}/unrevert", {})
        assert conversation(opencode, session) == ["plant a pear", "ECHO", "plant a plum", "ECHO"]
        server.post(f"/session/{session}/revert", {"messageID": plum})
        server.say(session, "plant a fig")
        planted = ["plant a pear", "ECHO", "plant a fig", "ECHO"]
        assert conversation(opencode, session) == planted
        fork = str(server.post(f"/session/{session}/fork", {})["id"])
        server.say(fork, "water them")
        assert conversation(opencode, fork) == [*planted, "water them", "ECHO"]
        assert [entry.is_copy for entry in entries(opencode, fork)] == [True] * 4 + [False] * 2
        server.post(f"/session/{session}/summarize", {"providerID": "fake", "modelID": "fake-1"})
        server.say(session, "go home")
        assert conversation(opencode, session) == [*planted, "COMPACTED", "go home", "ECHO"]
    transcript = (
        opencode.home
        / ".claude"
        / "projects"
        / encode_cwd(str(opencode.project))
        / f"{new_id()}.jsonl"
    )
    event = {
        "session_id": transcript.stem,
        "transcript_path": str(transcript),
        "cwd": str(opencode.project),
        "hook_event_name": "UserPromptSubmit",
        "prompt": "hi",
    }
    told = run(event, opencode.home).decode()
    assert "plant a fig" in told
    assert "water them" in told
    assert "plum" not in told


def entries(opencode: OpenCode, session: str) -> list[Entry]:
    """What counts in a session, by its mirror as upkeep brings it up to date, without where it was
    compacted."""
    return [one for one in _read(opencode, session) if one is not None]


def conversation(opencode: OpenCode, session: str) -> list[str]:
    """What was said in it: the prompts, `ECHO` for each answer, and `COMPACTED` where that was
    done."""
    found = _read(opencode, session)
    return ["COMPACTED" if one is None else one.text.partition("[")[0] for one in found]


def _read(opencode: OpenCode, session: str) -> list[Entry | None]:
    environment = {**opencode.environment, "PYTHONPATH": str(REPOSITORY)}
    sessions = [
        sys.executable,
        "-c",
        "import sys; from session_memory.cli import main; main()",
        "sessions",
        "--all",
    ]
    subprocess.run(
        sessions, env=environment, cwd=opencode.project, stdout=subprocess.DEVNULL, check=True
    )
    mirrors = opencode.home / ".session-memory" / "state" / opencode.NAME
    (mirror,) = mirrors.rglob(f"{session}.jsonl")
    with mirror.open("rb") as file:
        reader = TranscriptReader(runtime(opencode.NAME), file.readline())
        return list(reader.conversation(file.fileno()))
