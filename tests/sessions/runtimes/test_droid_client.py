"""The real Droid after an install: told at its start, refused an edit, and heard by the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from clients.installed import InstalledClients
from clients.npm import NpmPlace
from runtimes_scene import SHELL

COMMENTED = """// the person's own
{
  "hooks": { /* none yet */ },
  "enableHooks": true
}
"""


@pytest.fixture
def droids(tmp_path: Path, npm_place: NpmPlace) -> Iterator[InstalledClients]:
    with ExitStack() as stack:
        yield InstalledClients(tmp_path, npm_place, stack, "droid", COMMENTED)


@pytest.mark.slow
def test_droid_hears_of_the_others_edits_and_the_others_of_its_own(
    droids: InstalledClients,
) -> None:
    droids.check_edits_are_heard_both_ways()


@pytest.mark.slow
def test_an_edit_of_a_file_that_another_session_edited_is_refused_once(
    droids: InstalledClients,
) -> None:
    droids.check_an_edit_is_refused_once()


@pytest.mark.slow
def test_its_model_finds_the_tools_after_an_install(droids: InstalledClients) -> None:
    tool = "session-memory___list_sessions"
    search = ("ToolSearch", {"query": f"select:{tool}"})
    droids.check_its_model_has_the_tools(tool, search)


@pytest.mark.slow
def test_its_commands_know_their_session_and_an_uninstall_gives_the_settings_back(
    droids: InstalledClients,
) -> None:
    droid = droids.tested
    droid.orders("say who", droid.call(SHELL, "echo $DROID_SESSION_ID > id.txt"))
    droid.ask("say who")
    id = (droids.project / "id.txt").read_text().strip()
    assert id == droid.program.last_session()
    done = droids.machine.run(
        str(droids.machine.program_dir / "bin/session-memory"), "sessions", "--all", "--json"
    )
    sessions = json.loads(done.stdout)["sessions"]
    assert [one["runtime"] for one in sessions if one["id"] == id] == ["droid"]
    droids.check_an_uninstall_gives_the_settings_back("sessions/", "logs/")
