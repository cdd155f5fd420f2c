"""What a prompt loads: what the hook's speed hangs on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from hooks_scene import PlainUser
from records import append, exchange

ROOT = Path(__file__).resolve().parents[3]
HOOK = ROOT / "hooks" / "user_prompt_submit.py"
CALL_HOOK = ROOT / "hooks" / "pre_tool_use.py"

# Every prompt pays for these, about a hundredth of a bare interpreter each. One more needs a good
# reason.
EVERY_PROMPT = {
    "__future__",
    "_json",
    "entry",
    "session_memory",
    "session_memory.awareness",
    "session_memory.common",
    "session_memory.extension_points",  # not if an install has compiled its rows into the bundle
    "session_memory.sessions",
    "session_memory.awareness.activity",
    "session_memory.awareness.events",
    "session_memory.sessions.settings",
    "session_memory.common.system",
    "session_memory.common.text",
    "session_memory.sessions.transcripts",
    "session_memory.awareness.activity.changes",
    "session_memory.sessions.transcripts.entries",
    "session_memory.common.errors",
    "session_memory.common.system.json",
    "session_memory.common.system.deadline",
    "session_memory.common.system.files",
    "session_memory.sessions.settings.homes",
    "session_memory.awareness.events.context",
    "session_memory.awareness.events.main",
    "session_memory.awareness.events.prompt",
    "session_memory.common.text.paths",
    "session_memory.sessions.runtimes",
    "session_memory.sessions.runtimes.base",
    "session_memory.sessions.runtimes.table",
    "session_memory.sessions.runtimes.claude",
    "session_memory.sessions.settings.compiled",
    "session_memory.sessions.transcripts.projects",
}
# Those with something to tell pay for these too.
SOMETHING_NEW = {
    "fcntl",
    "session_memory.awareness.activity.session_state",
    "session_memory.sessions.transcripts.read_cursor",
    "session_memory.awareness.activity.delivery",
    "session_memory.awareness.activity.updates",
    "session_memory.sessions.runtimes.records",
    "session_memory.sessions.runtimes.claude.records",
    "session_memory.common.text.timestamps",
    "session_memory.sessions.transcripts.reader",
    "session_memory.sessions.transcripts.lines",
    "session_memory.awareness.activity._new_entries",
    "session_memory.common.text.sanitize",
    "session_memory.common.text.secrets",
    "session_memory.common.text.secrets.redaction",
    "session_memory.common.text.secrets.rules",
    "session_memory.awareness.activity._forks",
    "session_memory.awareness.activity._relevance",
    "session_memory.awareness.activity.report",
    "session_memory.awareness.activity.update_text",
    "session_memory.awareness.activity.viewpoint",
    "session_memory.common.text.format",
}
# What a project is has to be found out once, and again where a directory changed.
NEW_PROJECT = {
    "session_memory.sessions.transcripts.project_folders",
    "session_memory.common.system.git",
    "session_memory.awareness.activity._own_work",
}


# A tool call with nothing new pays for these beside what every prompt does.
EVERY_CALL = {
    "session_memory.awareness.activity.session_state",
    "session_memory.sessions.transcripts.read_cursor",
    "session_memory.awareness.activity.call_collisions",
    "session_memory.awareness.activity.call_log",
    "session_memory.awareness.activity.actions",
    "session_memory.awareness.events.tool_call",
}

# The line is shown again and again, and looks at no session.
ONLY_PROMPTS = {
    "session_memory.awareness.activity.changes",
    "session_memory.awareness.events.prompt",
    "session_memory.sessions.transcripts.projects",
}
STATUS_LINE = {
    "session_memory.awareness.events.upkeep_start",  # starts a count
    "session_memory.awareness.activity.status_line",
    "session_memory.common.text.timestamps",
}


class TestHotPath:
    def test_a_prompt_with_nothing_new_loads_these_modules_and_no_others(self, plain):
        path = plain.session(*exchange("hello", "hi"))
        an_hour_ago = time.time() - 3600  # what was written just now would be looked at once more
        os.utime(path, (an_hour_ago, an_hour_ago))
        settle_directories(plain)
        for _ in range(3):  # it is told, that is found, and nothing is new
            plain.run()
        output, loaded = run_hook(plain)
        assert output == b""
        assert loaded == not_built_in(EVERY_PROMPT)

    def test_a_prompt_with_something_new_loads_these_modules_and_no_others(self, plain):
        path = plain.session(*exchange("hello", "hi"))
        settle_directories(plain)
        plain.run()
        append(path, *exchange("how is it going?", "Fine."))
        output, loaded = run_hook(plain)
        assert b"how is it going?" in output
        assert loaded == not_built_in(EVERY_PROMPT | SOMETHING_NEW)

    def test_the_first_prompt_ever_loads_what_finds_the_project_too(self, plain):
        plain.session(*exchange("hello", "hi"))
        output, loaded = run_hook(plain)
        assert b"hello" in output
        assert loaded == not_built_in(EVERY_PROMPT | SOMETHING_NEW | NEW_PROJECT)

    def test_a_tool_call_with_nothing_new_loads_these_modules_and_no_others(self, plain):
        path = plain.session(*exchange("hello", "hi"))
        an_hour_ago = time.time() - 3600
        os.utime(path, (an_hour_ago, an_hour_ago))
        settle_directories(plain)
        plain.run()
        plain.run()
        call = {"tool_name": "Edit", "tool_input": {"file_path": "/srv/agent/app"}}
        output, loaded = run_hook(plain, CALL_HOOK, **call)
        assert output == b""
        assert loaded == not_built_in(EVERY_PROMPT | EVERY_CALL)

    def test_the_status_line_loads_these_modules_and_no_others(self, plain):
        plain.config("statusline: true\n")
        plain.session(*exchange("hello", "hi"))
        plain.run()
        output, loaded = run_hook(plain, ROOT / "hooks" / "status_line.py")
        assert b"1 other active" in output
        assert loaded == not_built_in((EVERY_PROMPT - ONLY_PROMPTS) | STATUS_LINE)


def settle_directories(plain: PlainUser) -> None:
    """Makes the directories of transcripts so old that they are not looked at twice."""
    for directory in (plain.project_dir, plain.project_dir.parent):
        os.utime(directory, (1, 1))


def run_hook(plain: PlainUser, hook: Path = HOOK, **event: object) -> tuple[bytes, set[str]]:
    """Return the hook's output, and the modules that it loads beyond a bare interpreter's."""
    output, loaded = run_python([str(hook)], plain, **event)
    return output, not_built_in(loaded - run_python(["-c", "pass"], plain)[1])


def not_built_in(names: set[str]) -> set[str]:
    """`names` without the modules in the interpreter's own file: they take no time, and each system
    has others."""
    return names - set(sys.builtin_module_names)


def run_python(arguments: list[str], plain: PlainUser, **fields: object) -> tuple[bytes, set[str]]:
    """Return a program's output, and the modules that it loads, from `-X importtime`."""
    command = [sys.executable, "-I", "-S", "-X", "importtime", *arguments]
    event = json.dumps(plain.event(**fields)).encode()
    environ = {"HOME": str(plain.root), "CLAUDE_PID": "4711"}
    done = subprocess.run(command, input=event, capture_output=True, env=environ, check=True)
    return done.stdout, set(
        re.findall(r"^import time: .*\| +(\S+)$", done.stderr.decode(), re.MULTILINE)
    )
