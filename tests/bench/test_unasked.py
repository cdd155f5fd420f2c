"""The scene that hooks of several tools are compared by."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bench.unasked
from bench.unasked import scene

HOOKS = {
    "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "git status --short"}]}],
    "PreToolUse": [
        {
            "matcher": "Edit|Write",
            "hooks": [{"type": "command", "command": "echo stale >&2; exit 2"}],
        }
    ],
}


@pytest.mark.parametrize(
    ("probe", "expected"), [("prompt", "told"), ("edit", "refused"), ("`git commit -a`", "-")]
)
def test_a_scene_shows_what_the_hooks_of_a_home_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probe: str, expected: str
) -> None:
    monkeypatch.setattr(bench.unasked, "PAUSE_SECONDS", 0.0)
    settings = tmp_path / "tool/.claude/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"hooks": HOOKS}))
    assert scene(tmp_path / "tool", tmp_path, "edits the file", probe) == expected
