"""Names of commands in an update."""

from __future__ import annotations

import pytest

from session_memory.awareness.activity._commands import names_of
from session_memory.sessions.transcripts.entries import ToolUse


@pytest.mark.parametrize(
    ("commands", "named"),
    [
        (["mkdir -p out && rm -r old", "cd app; ls; cat a"], []),
        (["mkdir -p out && npm test", "rm -r out"], ["npm test"]),
        (["time rtk git push", "sudo env A=1 make build"], ["git push", "make build"]),
        (
            ['git add . && rtk git commit -m "$(cat <<\'EOF\'\nFix the "cart"\n\nSlots.\nEOF\n)"'],
            ['git commit "Fix the "cart""'],
        ),
        (
            ["git commit -am wip", "git commit --amend --no-edit"],
            ['git commit "wip"', "git commit"],
        ),
        (["export A=1", "echo done; sleep 3", "source .env"], []),
    ],
)
def test_commands_that_keep_house_have_no_name_and_wrappers_are_looked_through(commands, named):
    ran = [ToolUse("Bash", command, "command") for command in commands]
    assert names_of(ran) == named
