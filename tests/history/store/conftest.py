"""The scenes for what holds of every engine of the store that is read from."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_scene import Scene


@pytest.fixture(params=["sqlite", "postgres"])
def each_scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    """A store, and, as `told`, the engine that is read from."""
    return scene_of(request, tmp_path)


@pytest.fixture
def scene(each_scene: Scene) -> Scene:
    return each_scene


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def usual_scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    """The same for what is done above the engines: with that of a team only with `--all`."""
    return scene_of(request, tmp_path)


def scene_of(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    if request.param == "sqlite":
        return Scene(tmp_path)
    from team_scene import TeamScene

    return TeamScene(tmp_path, request.getfixturevalue("team"))
