"""Conflicts between the real Codex and the real Claude Code, in two worktrees of one repository."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from clients.claude import Claude, Turn, resume
from clients.npm import NpmPlace
from clients.others import CODEX, Codex
from fakes.fake_responses import FakeResponses
from git_scene import git, repository

CART = "".join(f"line {number}\n" for number in range(1, 41))
SCENE_SECONDS = 60


def edits(claude: Claude, prompt: str, old: str, new: str) -> Turn:
    """A turn in which Claude Code edits the cart."""
    cart = str(claude.project / "cart")
    calls = [
        ("Read", {"file_path": cart}),
        ("Edit", {"file_path": cart, "old_string": old, "new_string": new}),
    ]
    claude.api.replies = [
        *[{"tools": [{"name": name, "input": given}]} for name, given in calls],
        "done",
    ]
    return claude.run(prompt, "--allowedTools", "Read,Edit")


@pytest.mark.slow
def test_claude_code_is_told_what_will_not_merge_with_codex_in_another_worktree(
    tmp_path: Path, claude: Claude, npm_place: NpmPlace
) -> None:
    claude.project.rmdir()
    repository(claude.project, cart=CART)
    fix = tmp_path / "shop-fix"
    git(claude.project, "worktree", "add", "-q", "-b", "fix/login", str(fix))
    own = edits(claude, "Mend the tax", "line 20\n", "ours\n")
    with FakeResponses() as model:
        codex = Codex(tmp_path, npm_place(CODEX), model)
        codex.project = fix
        (codex.home / ".codex").mkdir(exist_ok=True)
        command = {"cmd": "sleep 0.3; sed -i 's/^line 20$/theirs/' cart; sleep 0.3"}
        codex.run("--sandbox", "danger-full-access", "TOOL exec_command " + json.dumps(command))
    assert "theirs\n" in (fix / "cart").read_text()
    claude.api.replies = ["Nothing yet."]
    first = resume(claude, own, "What did the others do?")
    assert [
        line
        for line in first.told
        if "in worktree shop-fix" in line or "you edited it here" in line
    ]
    kept = claude.state_dir() / "conflicts.json"
    deadline = time.monotonic() + SCENE_SECONDS
    while not kept.exists():  # the prompt has started the search
        assert time.monotonic() < deadline, "no search for conflicts"
        time.sleep(0.1)
    claude.api.replies = ["I see."]
    second = resume(claude, own, "And now?")
    [line] = [line for line in second.told if "conflict" in line]
    assert line.startswith("! cart: your line 20 conflicts with line 20 changed ")
    assert line.endswith("(Codex, branch fix/login)")
    [transcript] = (claude.config_dir / "projects").rglob(f"{own.session_id}.jsonl")
    assert line.replace('"', '\\"') in transcript.read_text()
