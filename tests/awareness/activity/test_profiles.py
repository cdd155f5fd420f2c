"""Two profiles of Claude Code (`CLAUDE_CONFIG_DIR`) are two homes; with one directory of
transcripts, each sees both."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from git_scene import repository
from hooks_scene import run as run_hook
from records import append, exchange, new_id
from store_scene import StoreUser

from session_memory.sessions.runtimes.table import runtime

CLAUDE = runtime("agent-sdk")


class Profile(StoreUser):
    """A session of one profile in the person's repository."""

    def __init__(self, home: Path, config_dir: str) -> None:
        super().__init__(home)
        self.id, self.place = new_id(), home / config_dir
        self.project = home / "work"

    @property
    def transcript(self) -> Path:
        folder = Path(CLAUDE.project_dir(str(self.place), str(self.project)))
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{self.id}.jsonl"

    def does(self, prompt: str, tool: str, **arguments: str) -> None:
        where = {"sessionId": self.id, "cwd": str(self.project), "at": time.time()}
        call = (tool, {"file_path": f"{self.project}/a.py", **arguments})
        append(self.transcript, *exchange(prompt, call, **where))

    def prompt(self) -> str:
        event = {
            "session_id": self.id,
            "hook_event_name": "UserPromptSubmit",
            "prompt": "go on",
            "transcript_path": str(self.transcript),
            "cwd": str(self.project),
        }
        return run_hook(event, self.home, CLAUDE_CONFIG_DIR=str(self.place)).decode()


@pytest.mark.parametrize("is_shared", [False, True], ids=["apart", "shared"])
def test_profiles_that_share_their_transcripts_are_told_of_each_other(
    tmp_path: Path, is_shared: bool
) -> None:
    first, second = Profile(tmp_path, ".claude"), Profile(tmp_path, ".claude-work")
    repository(first.project, a="1\n")
    if is_shared:
        (tmp_path / ".claude" / "projects").mkdir(parents=True, exist_ok=True)
        second.place.mkdir()
        (second.place / "projects").symlink_to(tmp_path / ".claude" / "projects")
    first.does("read the plum", "Read")
    assert first.prompt() == ""
    (first.project / "a.py").write_text("2\n")
    second.does("eat the plum", "Edit", old_string="1", new_string="2")
    assert ("read the plum" in second.prompt()) == is_shared
    assert ("eat the plum" in first.prompt()) == is_shared
    found = first.result("search", "plum", cwd=first.project)["hits"]
    assert {hit["conversation"]["session_id"] for hit in found} == (
        {first.id, second.id} if is_shared else {first.id}
    )
