"""Randomly changed records and files raise nothing and do not affect the other transcripts.

`FUZZ_ROUNDS` sets the number of rounds; the number of a failed round is its seed.
"""

from __future__ import annotations

import copy
import io
import os
import random
from contextlib import redirect_stderr, redirect_stdout

import pytest
from hooks_scene import PlainUser, run
from records import PiSession, assistant, exchange, line, new_id, tool_result, user, write
from store_scene import MONDAY

from session_memory import cli
from session_memory.app.commands import read
from session_memory.app.tools.call import call
from session_memory.app.tools.definitions import TOOLS
from session_memory.app.tools.home_backend import HomeBackend

ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "3"))
USUAL = "the cherry blossom is in April"
COMMANDS = [
    ("ingest",),
    ("search", "cherry"),
    ("conversations",),
    ("patterns",),
    ("errors", "failed"),
    ("archive", "--all"),
    ("health-check",),
]


def value(dice: random.Random) -> object:
    """A value that nobody would write."""
    deep: object = "deep"
    for _ in range(dice.choice([5, 300])):
        deep = [deep] if dice.random() < 0.5 else {"a": deep}
    return dice.choice(
        [
            None,
            True,
            0,
            -1,
            1 << 70,
            -(10**40),
            1.5,
            float("nan"),
            float("inf"),
            "",
            "x" * 100_000,
            "\0",
            "\ud83d",
            "\udc00 x",
            "a\u2028b\x1b[31m\u202e",
            "<system-reminder>",
            [],
            [[]],
            {},
            {"a": None},
            [None, 5, {"type": 5}],
            deep,
            "2026-13-45T99:99:99Z",
            "9999999999999999999999",
        ]
    )


def mutated(record: object, dice: random.Random) -> object:
    """Return a copy of a record with a few values anywhere changed, removed or renamed."""
    record = copy.deepcopy(record)
    for _ in range(dice.randint(1, 3)):
        at, keys = record, []
        while isinstance(at, dict | list) and at:
            key = dice.choice(list(at) if isinstance(at, dict) else range(len(at)))
            keys.append((at, key))
            at = at[key]
        if not keys:
            return value(dice)
        holder, key = dice.choice(keys)
        kind = dice.random()
        if kind < 0.75:
            holder[key] = value(dice)
        elif kind < 0.9:
            del holder[key]
        elif isinstance(holder, dict):
            holder[f"\ud800{key}"] = holder.pop(key)
    return record


def content(records: list[dict[str, object]], dice: random.Random) -> bytes:
    """The lines of a transcript of which some records are mutated, and perhaps the bytes too."""
    made = [line(mutated(one, dice)) if dice.random() < 0.6 else line(one) for one in records]
    for _ in range(dice.randint(0, 2)):
        at = dice.randrange(len(made))
        one = made[at]
        cut = dice.randrange(len(one))
        made[at] = dice.choice(
            [
                one[:cut],
                one[:cut] + b"\0" * 9 + one[cut:],
                one[:cut] + b"\xff\xfe" + one[cut:],
                one.rstrip() + one,
                b"\r\n" + one,
                b"[" * 50_000 + b"\n",
                b'{"a":' * 20_000 + b"\n",
                b"9" * 10_000 + b"\n",
            ]
        )
    return b"".join(made)


def claude_records() -> list[dict[str, object]]:
    call_id = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "Bash",
        "input": {"command": "pytest -q"},
    }
    edit = ("Edit", {"file_path": "/srv/agent/app.py", "old_string": "a", "new_string": "b"})
    return [
        {"type": "custom-title", "customTitle": "garden", "sessionId": "odd"},
        user("odd question", at=MONDAY, cwd="/srv/agent"),
        assistant("odd answer", call_id, edit, at=MONDAY, cwd="/srv/agent"),
        tool_result("failed: no such file", at=MONDAY, is_error=True),
        *exchange("more", "words", at=MONDAY, cwd="/srv/agent"),
    ]


def pi_records() -> list[dict[str, object]]:
    session = PiSession(cwd="/srv/agent", at=MONDAY)
    session.user("odd question", at=MONDAY)
    session.assistant("odd answer", ("bash", {"command": "ls"}), at=MONDAY)
    session.add("session_info", name="garden", at=MONDAY)
    return session.records


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_nothing_raises_and_the_other_transcript_is_all_there(tmp_path, monkeypatch, seed):
    dice = random.Random(seed)
    plain = PlainUser(tmp_path)
    for name in [
        name
        for name in os.environ
        if name.startswith(("CLAUDE", "PI_", "SESSION_MEMORY", "ANTHROPIC"))
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    plain.session(*exchange("when is it?", USUAL))
    odd = []
    for records, folder in [
        (claude_records(), plain.project_dir),
        (pi_records(), tmp_path / ".pi/agent/sessions/--srv-agent--"),
    ]:
        for _ in range(4):
            path = write(folder / f"2026-01-01_{new_id()}.jsonl")
            path.write_bytes(content(records, dice))
            odd.append(path)

    assert USUAL in run(plain.event(), tmp_path).decode(), plain.log()
    assert [one for one in plain.log() if "Error" in one] == []
    pi = {
        "transcript_path": str(odd[-1].with_name("own.jsonl")),
        "hook_event_name": "before_agent_start",
    }
    run(plain.event(**pi), tmp_path, "pi_prompt")
    assert [one for one in plain.log() if "Error" in one] == []
    for words in COMMANDS:
        said = output(cli.main, [*words])
        if words[0] == "search":
            assert USUAL in said.replace("**", ""), said
    for path in odd:
        output(read.main, [path.stem])
    backend = HomeBackend(str(tmp_path), os.environ)
    for tool in TOOLS:
        if tool.name in ("list_sessions", "search_sessions", "read_session"):
            for word in ("cherry", "odd", odd[0].stem):
                arguments = {
                    key: word
                    for key in tool.schema["properties"]
                    if key in ("query", "session", "id", "name")
                }
                assert "Error" not in call(backend, tool.name, arguments).text[:40]
    archives = [
        path.read_text() for path in (tmp_path / ".session-memory/conversations").glob("*.md")
    ]
    assert any(USUAL in text for text in archives)


def output(command, words):
    """Return a command's output, which may report problems with a file but never a traceback."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(out), redirect_stderr(out):
        try:
            code = command(words)
        except SystemExit as end:
            code = end.code
    out.flush()
    said = out.buffer.getvalue().decode()
    assert code in (0, 1, None), (words, said)
    assert "Traceback" not in said, (words, said)
    return said
