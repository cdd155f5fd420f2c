"""Trajectories in ATIF: what is read of them, however they grow, change and break."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from records import atif_exchange
from runtimes_scene import Person

from session_memory.common.system import files
from session_memory.extras.conformance.fixture import said
from session_memory.sessions.runtimes.records import USAGE
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts import _mirrored_files as mirrored_files
from session_memory.sessions.transcripts.lines import first_line
from session_memory.sessions.transcripts.mirror import unread
from session_memory.sessions.transcripts.reader import TranscriptReader

ATIF = runtime("atif")
FIXTURES = Path(__file__).parent / "fixtures" / "atif"


class Trajectories:
    """A person's directory of trajectories."""

    def __init__(self, root: Path) -> None:
        self.person = Person(root)
        self.directory = root / ".atif"
        self.directory.mkdir()

    def write(self, *steps: dict[str, Any], name: str = "one") -> Path:
        return self.person.trajectory(self.person.app, *steps, name=name)

    @property
    def mirrors(self) -> Path:
        return Path(ATIF.transcripts_dir(str(self.directory)))

    def told(self, name: str = "one", everything: bool = False) -> list[tuple[str, str]]:
        """What a session says now."""
        ATIF.refresh(str(self.directory), everything)
        path = next(self.mirrors.glob(f"*/{name}.jsonl"))
        descriptor = os.open(path, os.O_RDONLY)
        try:
            reader = TranscriptReader(ATIF, first_line(descriptor))
            return said(list(reader.conversation(descriptor)))
        finally:
            os.close(descriptor)


@pytest.fixture
def trajectories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trajectories:
    monkeypatch.setitem(files.os.environ, b"HOME", os.fsencode(tmp_path))
    return Trajectories(tmp_path)


def ran(command: str, result: str | None, **extra: Any) -> dict[str, Any]:
    """A step that runs a command, with its result if there is one yet."""
    call = {
        "tool_call_id": f"call {command[:5].strip()}",
        "function_name": "bash",
        "arguments": {"command": command},
    }
    step: dict[str, Any] = {"source": "agent", "message": "", "tool_calls": [call]}
    if result is not None:
        step["observation"] = {
            "results": [{"source_call_id": call["tool_call_id"], "content": result, **extra}]
        }
    return step


def test_what_a_document_grows_by_is_added_to_its_mirror(trajectories: Trajectories) -> None:
    steps = [*atif_exchange("one?", "1."), ran("make", None)]
    trajectories.write(*steps)
    assert trajectories.told() == [("user", "one?"), ("assistant", "1."), ("tool", "command")]
    before = next(trajectories.mirrors.glob("*/one.jsonl")).read_bytes()
    steps[2] = ran("make", "done")  # the result comes once the command has ended
    trajectories.write(*steps, *atif_exchange("two?", "2."))
    assert trajectories.told()[2:] == [("tool", "command"), ("user", "two?"), ("assistant", "2.")]
    after = next(trajectories.mirrors.glob("*/one.jsonl")).read_bytes()
    assert after.startswith(before)
    assert after.count(b'"id": "call make"') == 1
    assert b"taken_back" not in after


def test_steps_that_say_something_else_now_are_taken_back(trajectories: Trajectories) -> None:
    steps = [*atif_exchange("one?", "1."), *atif_exchange("two?", "2.")]
    trajectories.write(*steps)
    trajectories.told()
    for number in (3, 2, 0):
        steps[number] = {**steps[number], "message": f"other {number}"}
        trajectories.write(*steps)
        expected = [
            ({"agent": "assistant"}.get(one["source"], "user"), one["message"]) for one in steps
        ]
        assert trajectories.told() == expected


def test_of_a_document_that_shrinks_the_rest_is_taken_back(trajectories: Trajectories) -> None:
    steps = [*atif_exchange("one?", "1."), *atif_exchange("two?", "2.")]
    for count in (4, 2, 3, 1, 4):
        trajectories.write(*steps[:count])
        assert [text for _, text in trajectories.told()] == ["one?", "1.", "two?", "2."][:count]


def test_of_a_document_longer_than_the_steps_that_a_mark_knows_any_step_may_change(
    trajectories: Trajectories,
) -> None:
    steps = [step for number in range(60) for step in atif_exchange(f"{number}?", "yes")]
    trajectories.write(*steps)
    trajectories.told()
    steps[1] = {**steps[1], "message": "no"}
    trajectories.write(*steps)
    assert [text for _, text in trajectories.told()] == [step["message"] for step in steps]


def test_broken_and_foreign_files_are_no_sessions_and_cost_no_other(
    trajectories: Trajectories,
) -> None:
    whole = trajectories.write(*atif_exchange("one?", "1.")).read_text()
    broken = {
        "cut.json": whole[:-9],
        "deep.json": whole[:45] + "[" * 90000,
        "package.json": '{"name": "x"}',
    }
    broken |= {
        "list.json": "[1]",
        "empty.json": "",
        "other.json": '{"note": "ATIF-v1.7", "steps": [1]}',
    }
    for name, content in broken.items():
        (trajectories.directory / name).write_text(content)
    (trajectories.directory / "loop").symlink_to(trajectories.directory)
    assert trajectories.told(everything=True) == [("user", "one?"), ("assistant", "1.")]
    assert sorted(key for key, _ in unread(str(trajectories.mirrors)) if "/" not in key) == [
        "cut.json",
        "deep.json",
    ]
    assert [path.name for path in trajectories.mirrors.glob("*/*.jsonl") if path.stem == "one"] == [
        "one.jsonl"
    ]
    (trajectories.directory / "cut.json").write_text(whole.replace('"one"', '"mended"'))
    assert trajectories.told("mended", everything=True) == [("user", "one?"), ("assistant", "1.")]
    assert "cut.json" not in dict(unread(str(trajectories.mirrors)))


def test_what_is_too_long_for_a_prompt_waits_for_upkeep(
    trajectories: Trajectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrored_files, "PROMPT_BYTES", 2000)
    trajectories.write(*atif_exchange("one?", "1." * 2000))
    trajectories.write(*atif_exchange("two?", "2."), name="two")
    assert trajectories.told("two") == [("user", "two?"), ("assistant", "2.")]
    assert not list(trajectories.mirrors.glob("*/one.jsonl"))
    assert trajectories.told("one", everything=True)[0] == ("user", "one?")


ODD: list[dict[str, Any]] = [
    {"step_id": 1},
    {"source": "user", "message": 7},
    {"source": "agent", "message": None, "tool_calls": "x"},
    {"source": "agent", "message": "", "tool_calls": [7, {"tool_call_id": [], "arguments": 7}]},
    {
        "source": "agent",
        "message": "",
        "observation": {"results": [{"source_call_id": 7, "content": 1}]},
    },
    {"source": "agent", "message": "", "metrics": {"prompt_tokens": -1, "extra": 7}, "extra": []},
    {"source": "robot", "message": "no"},
    {"source": ["user"], "message": "no"},
    {"source": "user", "timestamp": 9e99},
]


def test_an_odd_step_costs_itself_at_most(trajectories: Trajectories) -> None:
    for number, odd in enumerate(ODD):
        trajectories.write(
            *atif_exchange("one?", "1."), odd, *atif_exchange("one?", "1."), name=f"odd{number}"
        )
        texts = [one for one in trajectories.told(f"odd{number}") if one[0] != "tool"]
        assert texts == [("user", "one?"), ("assistant", "1.")] * 2, odd


def test_a_cost_beyond_all_reason_is_none() -> None:
    step = {
        "type": "step",
        "id": "a",
        "source": "agent",
        "metrics": {"prompt_tokens": 3, "cost_usd": 10**400},
    }
    [found] = ATIF.records.events(step, 0, USAGE)
    assert (found.input, found.dollars) == (3, None)


def test_every_version_is_read_by_its_number(trajectories: Trajectories) -> None:
    for minor in range(9):
        step = {"source": "user", "message": [{"type": "text", "text": "look"}, {"type": "image"}]}
        path = trajectories.write(step, name=f"v{minor}")
        path.write_text(path.read_text().replace("ATIF-v1.7", f"ATIF-v1.{minor}"))
        assert trajectories.told(f"v{minor}") == [("user", "look\n\n[image]")]


def test_step_ids_given_twice_are_steps_of_their_own(trajectories: Trajectories) -> None:
    path = trajectories.write(*atif_exchange("one?", "1."))
    path.write_text(path.read_text().replace('"step_id": 2', '"step_id": 1'))
    assert trajectories.told() == [("user", "one?"), ("assistant", "1.")]


def test_results_without_the_id_of_their_call_belong_to_the_calls_in_order(
    trajectories: Trajectories,
) -> None:
    two = [ran("one", None)["tool_calls"][0], ran("two", None)["tool_calls"][0]]
    results = [{"content": "first"}, {"content": "second", "extra": {"exit_code": 2}}]
    trajectories.write(
        {"source": "agent", "message": "", "tool_calls": two, "observation": {"results": results}}
    )
    trajectories.told()
    mirrored = next(trajectories.mirrors.glob("*/one.jsonl"))
    found = [
        (one["id"], one["content"])
        for one in map(json.loads, mirrored.open())
        if one["type"] == "result"
    ]
    assert found == [("call one", "first"), ("call two", "second")]


def test_two_documents_of_one_run_are_sessions_of_their_own(trajectories: Trajectories) -> None:
    path = trajectories.write(*atif_exchange("one?", "1."))
    other = path.with_name("trajectory.cont-1.json")
    other.write_text(path.read_text().replace("one?", "two?"))
    assert trajectories.told() in (
        [("user", f"{one}?"), ("assistant", "1.")] for one in ("one", "two")
    )
    assert len(list(trajectories.mirrors.glob("*/one*.jsonl"))) == 2
    os.rename(path, path.with_name("moved.json"))
    other.unlink()
    trajectories.told(everything=True)
    assert len(list(trajectories.mirrors.glob("*/one*.jsonl"))) == 2


def test_the_mirrors_of_the_fixture_are_what_the_suite_reads(trajectories: Trajectories) -> None:
    for path in (FIXTURES / "trajectories").iterdir():
        (trajectories.directory / path.name).write_bytes(path.read_bytes())
    ATIF.refresh(str(trajectories.directory))
    for name, own in (
        ("conversation.jsonl", "01a1fb3f*"),
        ("fork.jsonl", "01a1fb40*"),
        ("subagent.jsonl", "*/search-1*"),
    ):
        (path,) = trajectories.mirrors.glob(f"-srv-site/{own}.jsonl")
        assert path.read_bytes() == (FIXTURES / name).read_bytes()


def test_no_mirror_holds_a_secret_nor_what_an_excluded_session_said(
    trajectories: Trajectories,
) -> None:
    secret = "ghp_" + "a1B2" * 9
    trajectories.write(*atif_exchange(f"use {secret}", "no"), ran(f"curl -H {secret}", secret))
    trajectories.write(*atif_exchange("hush", "sure"), name="hidden")
    trajectories.person.rules("exclude: [hidden]\n")
    trajectories.told()
    content = b"".join(path.read_bytes() for path in trajectories.mirrors.rglob("*.jsonl"))
    assert secret.encode() not in content
    assert b"hush" not in content
    assert b"hidden:1" in content
