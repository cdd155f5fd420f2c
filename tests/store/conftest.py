"""The scene for what holds of every engine of the store that is read from."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_scene import Scene


@pytest.fixture(params=["sqlite", "postgres"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    """A store, and, as `told`, the engine that is read from."""
    if request.param == "sqlite":
        return Scene(tmp_path)
    team = request.getfixturevalue("team")
    from team_scene import TeamScene

    return TeamScene(tmp_path, team)
