"""The Python entries as the plugins in JavaScript start them: if one cannot start, nothing happens."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
OPENCODE = """
const { SessionMemory } = await import(PLUGIN);
process.env.SESSION_MEMORY_PYTHON = "x".repeat(5000);
const hooks = await SessionMemory({ directory: "/" });
await hooks.event({ event: { type: "session.created", properties: { info: { id: "s" } } } });
await new Promise((settle) => setTimeout(settle, 50));
console.log("goes on");
"""
OPENCLAW = """
const { default: plugin } = await import(PLUGIN);
process.env.SESSION_MEMORY_PYTHON = "/bin/false";
const hooks = {};
plugin.register({ on: (name, hook) => (hooks[name] = hook) });
const prompt = (session) => hooks.before_prompt_build({ prompt: "Go on.", messages: [1] }, { workspaceDir: "/", ...session });
const start = (childSessionKey, requesterSessionKey) =>
	hooks.subagent_spawned({}, { childSessionKey, requesterSessionKey });
const owner = async (session) => {
	const { OPENCLAW_SESSION_ID: id } = (await hooks.resolve_exec_env({}, session)) ?? {};
	console.log(`${session.sessionKey}: ${id}`);
};
"""
OWNERS = """
await prompt({ sessionKey: "agent:main:main", sessionId: "asked" });
await prompt({ sessionId: "without-a-key" });
for (const id of ["one", "two", "loop"]) await prompt({ sessionKey: `agent:main:subagent:${id}`, sessionId: id });
await start("agent:main:subagent:one", "agent:main:main");
await start("agent:main:subagent:two", "agent:main:subagent:one");
await start("agent:main:subagent:loop", "agent:main:subagent:loop");
await start("agent:main:subagent:nobody", undefined);
for (const id of ["one", "two", "loop", "nobody", "unknown"]) await owner({ sessionKey: `agent:main:subagent:${id}`, sessionId: id });
"""


def run_in_node(code: str, plugin: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run code for which PLUGIN is the file of a plugin."""
    return subprocess.run(
        [
            shutil.which("node") or "",
            "--input-type=module",
            "--eval",
            code.replace("PLUGIN", json.dumps(f"{REPOSITORY}/hooks/{plugin}")),
        ],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_an_interpreter_that_cannot_be_started_ends_no_session(tmp_path: Path) -> None:
    done = run_in_node(OPENCODE, "opencode/index.js", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "goes on\n", "")


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_a_sub_agent_of_openclaw_works_for_the_session_that_started_it_or_for_none(
    tmp_path: Path,
) -> None:
    done = run_in_node(OPENCLAW + OWNERS, "openclaw/index.mjs", tmp_path)
    owners = {"one": "asked", "two": "asked"}
    assert done.stdout.splitlines() == [
        f"agent:main:subagent:{name}: {owners.get(name, 'undefined')}"
        for name in ("one", "two", "loop", "nobody", "unknown")
    ]
