"""Code mode of Codex before 0.169: the script by which the model calls tools is all that names its
commands and patches."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from records import stamp

from session_memory.awareness.activity.session_edits import SessionCalls
from session_memory.sessions.runtimes.codex.scripts import commands_in, patches_in
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.entries import Session
from session_memory.sessions.transcripts.log import last_entries

CODEX = runtime("codex")
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-old\n+a line of the patch\n*** Add File: /srv/app/b.py\n+first\n*** End Patch\n"


@pytest.mark.parametrize(
    ("script", "commands"),
    [
        ('const r = await tools.exec_command({cmd: "cat notes.txt"}); text(r);', ["cat notes.txt"]),
        (
            'tools.exec_command({"cmd":"sed -i \'s/1/2/\' a.py","workdir":"/srv"})',
            ["sed -i 's/1/2/' a.py"],
        ),
        (
            "await Promise.all([tools.exec_command({cmd: 'ls a'}), tools.exec_command({cmd: `echo \"b\"`})])",
            ["ls a", 'echo "b"'],
        ),
        ("tools.exec_command({cmd: `cat ${name}`})", []),
        ('text("cmd: no command"); // exec_command({cmd: "rm -rf x"})', []),
        ("tools.exec_command({cmd: 'it\\'s'})", ["it's"]),
        ('tools.exec_command({cmd: "unfinished', []),
    ],
)
def test_the_commands_of_a_script_are_those_that_it_has_literally(
    script: str, commands: list[str]
) -> None:
    assert commands_in(script) == commands


def test_the_patch_of_a_script_is_found_in_a_variable_and_in_a_template() -> None:
    assert patches_in(f"const patch = {json.dumps(PATCH)};\nawait tools.apply_patch(patch);") == [
        PATCH
    ]
    assert patches_in(f"await tools.apply_patch(`{PATCH}`);") == [PATCH]
    assert patches_in(f"text({json.dumps(PATCH)})") == []


def old_line(payload: dict[str, Any], kind: str = "response_item", ago: float = 0) -> str:
    line = {"timestamp": stamp(time.time() - ago), "type": kind, "payload": payload}
    return json.dumps(line, separators=(",", ":")) + "\n"


@pytest.mark.parametrize("is_applied", [True, False])
def test_an_edit_and_a_command_of_a_script_count_as_the_sessions(
    tmp_path: Path, is_applied: bool
) -> None:
    script = f"const patch = {json.dumps(PATCH)};\nawait tools.apply_patch(patch);"
    command = "tools.exec_command({cmd: 'echo more >> c.py && git commit -qam \"More\"'})"
    applied = {
        "type": "patch_apply_end",
        "call_id": "c1",
        "success": is_applied,
        "stderr": "",
        "changes": {"a": {}, "b": {}},
    }
    path = tmp_path / "rollout-2026-07-01T10-00-00-01a200e8-4dc1-7591-89b8-1701081ad50b.jsonl"
    path.write_text(
        old_line({"id": "a", "cwd": "/srv/app"}, "session_meta")
        + old_line(
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Go on"}],
            }
        )
        + old_line({"type": "custom_tool_call", "call_id": "c1", "name": "exec", "input": script})
        + old_line(applied, "event_msg")
        + old_line(
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "Script completed\n{}"}
        )
        + old_line({"type": "custom_tool_call", "call_id": "c2", "name": "exec", "input": command})
        + old_line(
            {
                "type": "custom_tool_call_output",
                "call_id": "c2",
                "output": 'Script completed\n{"exit_code":0}',
            }
        )
    )
    entries, _ = last_entries(CODEX, str(path), 10, None)
    edits = SessionCalls(Session("a", str(path)), CODEX, entries).edits
    patched = ["/srv/app/a.py", "/srv/app/b.py"] if is_applied else []
    assert [edit.path for edit in edits] == [*patched, "/srv/app/c.py"]
    if is_applied:
        assert edits[0].count_written(["a line of the patch"]) == 1
