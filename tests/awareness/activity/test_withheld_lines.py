"""No line about another session's edit is withheld, whatever the settings say."""

from __future__ import annotations

from pathlib import Path

from collision_scene import Pair, collisions, play

from bench.clones import Clone
from session_memory.sessions.settings.compiled import Settings


def test_a_line_is_not_withheld_by_a_setting_of_0_4(tmp_path: Path) -> None:
    pair = Pair(Clone(tmp_path))
    play(
        pair, ["main read", "later 1", "discord edit", "discord $ git commit -qam done", "later 1"]
    )
    told = pair.main.prompt(settings=Settings({"proof": {"withhold": 1.0}}))
    assert collisions(told) == ['! src/app.py: edited 1m ago by "discord", after you read it']
