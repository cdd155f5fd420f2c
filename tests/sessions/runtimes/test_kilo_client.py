"""The real Kilo after an install: it hears of the others' edits, they hear of its own, and nothing
remains of the install."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from clients.everyone import CLIENTS, User
from clients.installed import InstalledClients
from clients.npm import NpmPlace
from install_machine import copy_repository
from runtimes_scene import SHELL

pytestmark = pytest.mark.slow


@pytest.fixture
def kilos(tmp_path: Path, npm_place: NpmPlace) -> Iterator[InstalledClients]:
    with ExitStack() as stack:
        comment, file = "// the person's own\n", ".config/kilo/kilo.json"
        yield InstalledClients(tmp_path, npm_place, stack, "kilo", comment, file=file)


@pytest.fixture
def kilo(tmp_path: Path, npm_place: NpmPlace) -> Iterator[User]:
    """Kilo without an install."""
    client = CLIENTS["kilo"]
    with client.model() as model:
        yield User("kilo", client.program(tmp_path, npm_place(client.package), model), model)


def test_kilo_hears_of_the_others_edits_and_the_others_of_its_own(kilos: InstalledClients) -> None:
    kilos.check_edits_are_heard_both_ways()
    kilos.check_an_uninstall_gives_the_settings_back()


def test_a_plugin_of_opencode_that_a_project_names_says_that_it_runs_in_kilo(
    kilo: User, tmp_path: Path
) -> None:
    plugin = copy_repository(tmp_path / "copy") / "hooks" / "opencode" / "index.js"
    project = kilo.program.project
    (project / "opencode.json").write_text(json.dumps({"plugin": [plugin.as_uri()]}))
    kilo.orders("say who", kilo.call(SHELL, "echo $KILO_SESSION_ID,$OPENCODE_SESSION_ID > id.txt"))
    kilo.ask("say who")
    assert re.fullmatch(r"ses_\w+,\n", (project / "id.txt").read_text())
