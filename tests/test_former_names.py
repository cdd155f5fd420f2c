"""Imports that the pages, templates and skills of 0.4 showed work for one more release."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from session_memory.former_names import FORMER_NAMES, MOVED

ROOT = Path(__file__).resolve().parents[1]
# As the pages of 0.4.2 had them.
SHOWN = (
    "from session_memory.agent_sdk import file_collisions_hook, session_updates_hook",
    "from session_memory import session_monitor",
    "from session_memory.memories.strategy import MemoryResult",
    "from session_memory.text.secrets import find_secrets, redact",
    "from session_memory.text import sanitize; sanitize.for_prompt",
    "from session_memory.archives.format import messages_in",
    "from session_memory.tools import GroupBackend, HomeBackend, sdk_server",
    "from session_memory.store.postgres.engine import TeamStore",
    "from session_memory.store.postgres.push import TeamPush",
    "from session_memory.store.postgres.schema import add_member, members, migrate, remove_member, setup_sql",
    "from session_memory.store.team_push import SharedAs, push_new",
    "from session_memory.testing.fixture import Fixture, fixture_of",
    "from session_memory.testing.runtimes import *; TestSessions",
    "from session_memory.testing.transcripts import *",
    "import session_memory.text.secrets; session_memory.text.secrets.redact",
)
IS_SAME = """
import session_memory.{former} as former, importlib
assert former.__name__ == "session_memory.{former}"
today = importlib.import_module("session_memory.{today}")
assert all(getattr(former, name) is getattr(today, name) for name in vars(today) if name[0] != "_")
"""


def run(code: str, *options: str, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", *options, "-c", code]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("code", SHOWN)
def test_an_import_that_0_4_showed_works(code: str) -> None:
    done = run(code)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("former", FORMER_NAMES)
def test_a_former_name_gives_what_the_module_of_today_has(former: str) -> None:
    done = run(IS_SAME.format(former=former, today=FORMER_NAMES[former]))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("former", MOVED)
def test_a_name_that_left_its_module_is_what_its_new_module_has(former: str) -> None:
    module, _, name = former.partition(".")
    today = f"session_memory.{MOVED[former]}"
    code = f"from {today} import {name} as today; from session_memory.{module} import {name}"
    done = run(f"{code}; assert {name} is today")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_former_name_warns_and_says_the_new_one() -> None:
    done = run("import session_memory.text", "-W", "always::DeprecationWarning")
    assert "session_memory.text is session_memory.common.text now" in done.stderr


def test_a_name_that_never_was_is_not_there() -> None:
    done = run("import session_memory.harbour")
    assert "No module named 'session_memory.harbour'" in done.stderr


def test_a_directory_that_an_update_by_git_left_behind_hides_no_former_name(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "session_memory", tmp_path / "session_memory")
    for name in FORMER_NAMES:
        directory = tmp_path / "session_memory" / name.replace(".", "/") / "__pycache__"
        directory.mkdir(parents=True)
    done = run("\n".join(SHOWN), root=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_packages_that_moved_are_those_of_the_former_names() -> None:
    code = "import session_memory; print(*session_memory._MOVED)"
    assert run(code).stdout.split() == sorted({name.split(".")[0] for name in FORMER_NAMES})
