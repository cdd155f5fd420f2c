"""`agents` says of each real client the state that it was driven into at its terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from clients.driven import HABITS, drive
from clients.everyone import CLIENTS
from clients.npm import NpmPlace


@pytest.mark.parametrize("name", sorted(HABITS))
def test_agents_tells_each_state_that_a_real_client_is_driven_into(
    name: str, tmp_path: Path, npm_place: NpmPlace
) -> None:
    cells = drive(name, tmp_path, npm_place(CLIENTS[name].package))
    untold = HABITS[name].untold
    assert [cell for cell in cells if cell.problem and cell.state not in untold] == []
    assert {cell.state for cell in cells if cell.problem} == set(untold)
