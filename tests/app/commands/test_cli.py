"""The command line itself: its subcommands, the reading of arguments, the modules loaded for them."""

from __future__ import annotations

import re
import subprocess
import sys
from argparse import ArgumentTypeError
from shlex import quote

import pytest
from records import exchange, user
from store_scene import COMMAND, MONDAY, ROOT, StoreUser

from session_memory import __version__
from session_memory.app.commands.arguments import point_in_time
from session_memory.app.commands.output import moment
from session_memory.app.tools.permissions import LOOKUPS
from session_memory.cli import ALIASES, COMMANDS


@pytest.fixture
def machine(tmp_path):
    return StoreUser(tmp_path / "user")


def test_every_subcommand_is_listed_and_explains_itself(machine):
    listed = machine.run("help", "all").stdout
    for name in COMMANDS:
        assert re.search(rf"^  {name}\b", listed, re.MULTILINE)
        done = machine.run(name, "--help")
        assert (done.returncode, done.stdout.startswith(f"usage: session-memory {name}")) == (
            0,
            True,
        )


def test_help_and_version_need_no_package(machine):
    for option in ("--help", "--version"):
        code = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r}); from session_memory.cli import "
            f"main; main([{option!r}])"
        )
        done = machine.run_command(sys.executable, "-I", "-S", "-c", code)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_version_is_told_without_loading_a_command(machine: StoreUser) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from session_memory.cli import main; "
        "main(['--version']); print(*sorted(sys.modules), sep='\\n')"
    )
    told, *modules = machine.run_command(sys.executable, "-c", code).stdout.splitlines()
    assert told == f"session-memory {__version__}"
    assert [name for name in modules if name.startswith("session_memory.app")] == []


def test_former_names_of_commands_still_work_and_are_not_listed(machine):
    machine.session("one", *exchange("a", "b"))
    machine.run("ingest")
    for former, name in ALIASES.items():
        options = {"filter": ["--all"], "show": ["1", "--json"]}.get(former, ["--json"])
        done, expected = machine.run(former, *options), machine.run(*name, *options)
        assert (done.returncode, done.stdout) == (expected.returncode, expected.stdout), former
        assert not re.search(rf"^ +{former}  ", machine.run("help", "all").stdout, re.MULTILINE)
    (line,) = re.findall(r"(?m)^Former names .*(?:\n.+)*", machine.run("help", "all").stdout)
    assert [name for name in ALIASES if f" {name} (" not in " ".join(line.split())] == []


def test_an_agent_that_may_look_something_up_may_do_so_by_the_former_name() -> None:
    of_lookups = {former for former, words in ALIASES.items() if words[0] in LOOKUPS}
    assert of_lookups == {"show", "conversations"}
    assert of_lookups <= {*LOOKUPS}


def test_doctor_has_a_section_for_the_status_and_one_for_the_store(machine):
    machine.session("one", *exchange("a", "b"))
    machine.run("ingest")
    found = machine.result("doctor", code=1)  # it is not installed into any home
    status, store = machine.result("doctor", "status"), machine.result("doctor", "store")
    assert {**found["status"], "ok": True} == {**status, "ok": True}
    assert found["store"] == store
    assert not found["ok"]
    assert machine.result("doctor", "hooks", code=1) == {
        name: found[name] for name in ("version", "program_dir", "ok", "findings", "next_updates")
    }


def test_options_are_understood_however_they_are_written(machine):
    machine.session("one", *exchange("a", "b"))
    machine.session("two", *exchange("a", "b"))
    for words in (["--limit", "1"], ["--limit=1"], ["--lim", "1"]):
        assert len(machine.result("conversations", *words)["conversations"]) == 1, words


def test_where_nothing_is_new_next_to_nothing_is_loaded(machine):
    machine.session("one", user("hello"))
    machine.run("ingest")
    command = (
        "import sys; from session_memory.cli import main; main(['ingest']); "
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path += {sys.path!r}; {command}"],
        capture_output=True,
        text=True,
        env=machine.environment,
        cwd=machine.home,
        check=True,
    )
    told, modules = done.stdout.splitlines()
    assert told == "Nothing new in 1 file."
    assert not {"json", "orjson", "rich", "pathlib"} & set(modules.split())


def test_a_package_that_is_missing_is_named(machine):
    machine.session("one", user("hello"))
    for name, package in (("ingest", "apsw"), ("watch", "watchfiles")):
        done = machine.run_command(sys.executable, "-S", "-c", COMMAND, name)
        assert done.returncode == 1
        assert done.stderr.startswith(
            f"session-memory: this needs {package}, which is not installed\n  python3 "
            f"{quote(f'{ROOT}/install.py')}"
        )


def test_a_search_loads_nothing_that_takes_longer_than_it(machine):
    machine.session("one", user("hello"))
    machine.run("ingest")
    command = "from session_memory.cli import main; main(['search', 'hello']); print(*sys.modules)"
    done = machine.run_command(
        sys.executable, "-S", "-c", f"import sys; sys.path += {sys.path!r}; {command}"
    )
    assert "hello" in done.stdout
    assert not {"rich", "yaml", "hashlib"} & set(done.stdout.splitlines()[-1].split())


class TestTimes:
    @pytest.fixture(autouse=True)
    def in_utc(self, set_zone):
        set_zone("UTC")

    def test_a_point_in_time_is_what_people_mean(self):
        for text, expected in (
            ("2026-02-01", "2026-02-01 00:00"),
            ("2026-02-01 13:30", "2026-02-01 13:30"),
            ("3d", "2026-09-18 14:13"),
            ("2h", "2026-09-21 12:13"),
            ("30m", "2026-09-21 13:43"),
            ("today", "2026-09-21 00:00"),
            ("Yesterday", "2026-09-20 00:00"),
        ):
            assert moment(point_in_time(text, MONDAY)) == expected
        for text in ("", "d", "-3d", "3y", "2026-13-01", "tomorrow", "１d" * 400):
            with pytest.raises(ArgumentTypeError, match="is not a time"):
                point_in_time(text, MONDAY)
