"""An install adds hooks to Hermes's config.yaml, and an uninstall gives the bytes back."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hermes_scene import HermesDatabase
from install_machine import PYTHON, Machine, used_machine

from session_memory.app.install import program
from session_memory.sessions.runtimes.table import runtime

MINE = "# mine\r\nmodel:\r\n  default: fake-1\r\n\r\nhooks:\r\n  pre_tool_call:\r\n    - command: say # x"


EVENTS = {"on_session_start", "pre_llm_call", "pre_tool_call"}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return used_machine(tmp_path / "home")


@pytest.fixture
def config(machine: Machine) -> Path:
    path = machine.home / ".hermes" / "config.yaml"
    path.parent.mkdir()
    return path


def hooks_in(config: Path) -> dict[str, list[dict[str, Any]]]:
    return dict(yaml.safe_load(config.read_text())["hooks"])


def allow(config: Path) -> None:
    """Allow all hooks, as Hermes notes it."""
    pairs = [
        (event, hook["command"]) for event, hooks in hooks_in(config).items() for hook in hooks
    ]
    approvals = [{"event": event, "command": command} for event, command in dict.fromkeys(pairs)]
    path = config.with_name("shell-hooks-allowlist.json")
    path.write_text(json.dumps({"approvals": approvals}, indent=2))


def add_parser(machine: Machine) -> None:
    """Put PyYAML into the private environment."""
    [packages] = machine.program_dir.glob("env/lib/python*/site-packages")
    (packages / "yaml").symlink_to(Path(yaml.__file__).parent)


def test_hooks_are_added_and_an_uninstall_gives_the_bytes_back(
    machine: Machine, config: Path
) -> None:
    config.write_bytes(MINE.encode())
    machine.installed()
    written, hooks = config.read_bytes(), hooks_in(config)
    assert [hook.get("matcher") for hook in hooks["pre_tool_call"]] == [
        "patch|write_file",
        "terminal",
        None,
    ]
    assert hooks["pre_tool_call"][2] == {"command": "say"}
    [prompt] = hooks["pre_llm_call"]
    assert shlex.split(prompt["command"])[-1] == "hermes"  # Hermes starts it without a shell
    assert prompt["timeout"] == 5
    machine.installed()
    assert config.read_bytes() == written
    assert machine.install("--uninstall").returncode == 0
    assert config.read_bytes() == MINE.encode()
    assert [path.name for path in config.parent.iterdir()] == ["config.yaml"]


def test_an_uninstall_keeps_what_was_written_around_our_hooks_since(
    machine: Machine, config: Path
) -> None:
    config.write_bytes(MINE.encode())
    machine.installed()
    config.write_bytes(config.read_bytes().replace(b"# mine", b"# still mine") + b"\r\nb: 2")
    machine.install("--uninstall")
    still_mine = MINE.replace("# mine", "# still mine").encode()
    assert config.read_bytes() == still_mine + b"\r\nb: 2"


def test_a_file_that_an_install_made_is_gone_afterwards(machine: Machine, config: Path) -> None:
    machine.installed()
    assert hooks_in(config).keys() == EVENTS
    machine.install("--uninstall")
    assert list(config.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a: 1\nb: [\n", "/.hermes/config.yaml:3:1: while parsing a flow node, expected"),
        (b"a: '\xff'\n", "/.hermes/config.yaml:1:5: it is not UTF-8"),
        (b"hooks: ~\n", "add these lines yourself:) hooks: on_session_start: - command: "),
    ],
)
def test_settings_that_cannot_get_hooks_are_left_as_they_are(
    text: bytes, said: str, machine: Machine, config: Path
) -> None:
    config.write_bytes(text)
    done = machine.install()
    assert done.returncode == 1
    assert said in " ".join((done.stdout + done.stderr).split())
    assert config.read_bytes() == text
    assert machine.settings.exists()  # Claude Code's, which got hooks


def test_doctor_names_hooks_that_hermes_may_not_run_yet(machine: Machine, config: Path) -> None:
    assert "answer `y` to its questions" in " ".join(
        machine.install("--runtime", "hermes").stdout.split()
    )
    code, wrong = machine.doctor()
    assert code == 1
    [found] = [text for text in wrong if "not trusted yet" in text]
    assert (
        found
        == "on_session_start, pre_tool_call and pre_llm_call: not trusted yet, so Hermes does not run them"
    )
    assert "start `hermes`" in wrong[found]
    allow(config)
    assert machine.doctor() == (0, {})
    config.with_name("shell-hooks-allowlist.json").unlink()
    config.write_text(config.read_text() + "hooks_auto_accept: true\n")
    assert machine.doctor() == (0, {})


def test_an_uninstall_names_the_permissions_that_hermes_keeps(
    machine: Machine, config: Path
) -> None:
    config.write_text("hooks:\n  pre_tool_call:\n    - command: x/say.py hermes\n")
    machine.installed("--runtime", "hermes")
    allow(config)
    for options in (["--dry-run"], []):
        said = " ".join(machine.install("--uninstall", *options).stdout.split())
        assert (
            "left 3 commands that Hermes may still run, in ~/.hermes/shell-hooks-allowlist.json: "
            "delete the `approvals` there whose command ends with `.py hermes`"
        ) in said


def test_the_hook_runs_without_a_shell_and_doctor_tries_it(machine: Machine, config: Path) -> None:
    project, at = machine.home / "shop", time.time() - 60
    project.mkdir()
    database = HermesDatabase(config.parent)
    database.exchange(database.session(project, at=at), "paint the door", "Yes.", at=at)
    machine.installed()
    add_parser(machine)
    [hook] = hooks_in(config)["pre_llm_call"]
    event = runtime("hermes").install.prompt_event("20261130_110000_a1b2c3", "", str(project), "hi")
    done = subprocess.run(
        shlex.split(hook["command"]),
        input=json.dumps(event),
        env=machine.environ,
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"paint the door" (' in json.loads(done.stdout)["context"]
    tried = machine.run(str(machine.program_dir / "bin/session-memory"), "doctor")
    assert '"paint the door" (' in " ".join(tried.stdout.replace("|", " ").split())


def test_a_profile_keeps_its_install_and_has_the_sessions_of_the_directory_above(
    machine: Machine, config: Path
) -> None:
    profile = config.parent / "profiles/work"
    profile.mkdir(parents=True)
    assert machine.install("--runtime", "hermes", HERMES_HOME=str(profile)).returncode == 0
    (profile / "config.yaml").unlink()
    code, wrong = machine.doctor()
    [mend] = wrong.values()
    assert (code, mend) == (1, f"session-memory install --home {profile}")
    done = machine.install(*mend.split()[2:])
    assert done.returncode == 0, done.stderr
    assert hooks_in(profile / "config.yaml").keys() == EVENTS
    done = machine.run_doctor("--home", str(profile))
    assert "none yet in ~/.session-memory/state/hermes" in " ".join(done.stdout.split())


def test_a_command_of_the_same_name_makes_no_install(machine: Machine) -> None:
    command = machine.home / ".local/bin/hermes"  # such as React Native's engine
    command.parent.mkdir(parents=True, exist_ok=True)
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    machine.installed()
    assert not (machine.home / ".hermes").exists()


class TestWithoutPyYAML:
    def test_a_bare_python_uses_the_parser_of_the_private_environment(
        self, machine: Machine, config: Path
    ) -> None:
        config.write_bytes(MINE.encode())
        add_parser(machine)
        bare = [PYTHON, "-I", "-S", str(machine.source / "install.py")]
        done = machine.run(*bare, "--runtime", "hermes")
        assert hooks_in(config).keys() == EVENTS, done.stderr
        config.write_bytes(config.read_bytes() + b"\r\n")
        assert machine.run(*bare, "--uninstall").returncode == 0
        assert config.read_bytes() == MINE.encode() + b"\r\n"

    def test_an_install_waits_for_the_parser_that_its_environment_brings(
        self, machine: Machine, config: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        config.write_bytes(MINE.encode())
        ensure, parser = program.ensure_program, sys.modules["yaml"]

        def ensure_program(*arguments: Any) -> program.InstalledProgram:
            sys.modules["yaml"] = parser
            return ensure(*arguments)

        monkeypatch.setitem(sys.modules, "yaml", None)
        monkeypatch.setattr(program, "ensure_program", ensure_program)
        planned = machine.install("--dry-run", "--runtime", "hermes")
        assert planned.returncode == 1
        assert "reading YAML needs PyYAML" in planned.stderr
        assert machine.install("--runtime", "hermes").returncode == 0
        assert hooks_in(config).keys() == EVENTS
