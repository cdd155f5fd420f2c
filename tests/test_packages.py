"""The repository as a package of each ecosystem: installed, at work, updated and gone again, with the real programs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_cli import Claude, claude_executable
from fakes.fake_anthropic import FakeAnthropic
from fakes.fake_llm import FakeLLM
from fakes.fake_responses import FakeResponses
from fakes.loopback import LoopbackServer
from install_machine import NOBODY_LISTENS, PYTHON, Machine, agent_home, tree
from other_runtimes import CODEX, QWEN, Codex, OtherRuntime, Qwen, installed
from package_copies import (
    MANIFESTS,
    NEXT_VERSION,
    NEXT_WORDS,
    REPOSITORY,
    copy_repository,
    make_index,
    make_next_version,
)
from pi_cli import Pi, pi_command
from runtime_table import Shown

from session_memory import __version__

PLUGIN = "session-memory@session-memory"
WAIT_SECONDS = 60
# Not the plugin's: what a home keeps of the sessions, with or without it, and what Claude Code notes of the servers that
# it has started (docs/packages.md, docs/tools.md).
OUR_STATE_AND_TRANSCRIPTS = (".claude/projects/", ".claude/.session-memory/", ".cache/claude-cli-nodejs/")


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"no {what} within {WAIT_SECONDS} s"
        time.sleep(0.05)


def mentions(directory: Path, *but: str) -> list[str]:
    """The files below a directory that name us, in their path or content, except below the paths `but`, and below what
    Claude Code has marked for its own removal, some days from now."""
    but += tuple(str(mark.parent.relative_to(directory)) for mark in directory.rglob(".orphaned_at"))
    found = []
    for path in sorted(directory.rglob("*")):
        relative = str(path.relative_to(directory))
        if relative.startswith(but) or (path.is_dir() and not path.is_symlink()):
            continue
        if "session-memory" in relative or (path.is_file() and b"session-memory" in path.read_bytes()):
            found.append(relative)
    return found


class ClaudePlugin:
    """A user's Claude Code that knows our marketplace, a copy of the repository, and nothing else of us."""

    def __init__(self, claude: Claude, source: Path) -> None:
        self.claude = claude
        self.source = source

    def plugin(self, *words: str) -> str:
        """Runs `claude plugin ...`; what it prints."""
        done = subprocess.run(
            [self.claude.executable, "plugin", *words], env=self.claude.environment, cwd=self.claude.project,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WAIT_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def data_dir(self) -> Path:
        return self.claude.config_dir / "plugins" / "data" / "session-memory-session-memory"

    def note(self) -> dict[str, Any]:
        """What the background set-up has noted; {} before it began."""
        path = self.data_dir / "environment.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def messages(self, prompt: str) -> list[str]:
        """What the user is shown by SessionStart hooks when a session begins with `prompt`."""
        done = subprocess.run(
            [self.claude.executable, "-p", prompt, "--output-format", "stream-json", "--verbose"],
            env=self.claude.environment, cwd=self.claude.project, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=WAIT_SECONDS, check=True,
        )  # fmt: skip
        records = [json.loads(line) for line in done.stdout.splitlines()]
        outputs = [r["stdout"] for r in records if r.get("subtype") == "hook_response" and r["stdout"].strip()]
        return [json.loads(output)["systemMessage"] for output in outputs if "systemMessage" in output]


@pytest.fixture
def plugin(tmp_path: Path, api: FakeAnthropic) -> ClaudePlugin:
    """Claude Code, with a `python3` on the PATH that has no packages, and no index from which it could get some."""
    if claude_executable() is None:
        pytest.skip("the wheel of claude-agent-sdk that is installed carries no CLI")
    claude = Claude(tmp_path, api)
    subprocess.run([PYTHON, "-I", "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    claude.environment["PATH"] = f"{tmp_path}/bare/bin:{claude.environment['PATH']}"
    claude.environment.update(PIP_INDEX_URL=NOBODY_LISTENS, PIP_RETRIES="0", PIP_CONFIG_FILE="/dev/null")
    plugin = ClaudePlugin(claude, copy_repository(tmp_path / "copy"))
    plugin.plugin("marketplace", "add", str(plugin.source))
    return plugin


def test_the_manifests_say_the_version_of_the_package() -> None:
    marketplace = json.loads((REPOSITORY / ".claude-plugin/marketplace.json").read_text())
    for path in MANIFESTS:
        manifest = json.loads((REPOSITORY / path).read_text())
        assert manifest["version"] == __version__
        assert [(entry["name"], entry["source"]) for entry in marketplace["plugins"]] == [(manifest["name"], "./")]


def test_claude_code_finds_the_plugin_and_the_marketplace_valid(plugin: ClaudePlugin) -> None:
    said = plugin.plugin("validate", "--strict", str(plugin.source))
    assert "Validation passed" in said
    assert "skills: session-memory:sessions" in said


def test_the_plugin_comes_works_is_updated_and_goes_in_claude_code(plugin: ClaudePlugin, shown: Shown) -> None:
    row, claude = "Claude Code, plugin", plugin.claude
    plugin.plugin("install", PLUGIN)
    assert f'"version": "{__version__}"' in plugin.plugin("list", "--json")
    shown(row, "install")

    claude.run("plan the garden")
    turn = claude.run("who is there?")
    assert [line.partition('"')[2] for line in turn.told] == ['plan the garden"; last: "ok (1)"']
    shown(row, "hook fires")
    assert turn.request is not None
    assert "session-memory:sessions: Look into the other sessions" in turn.request.text
    shown(row, "skill listed")

    make_next_version(plugin.source)
    plugin.plugin("marketplace", "update", "session-memory")
    plugin.plugin("update", PLUGIN)
    assert f'"version": "{NEXT_VERSION}"' in plugin.plugin("list", "--json")
    turn = claude.run("and now?")
    assert turn.request is not None
    assert f"{NEXT_WORDS}:\n[Session Activity]\n" in turn.request.text
    shown(row, "update")

    wait_until(lambda: bool(plugin.note().get("problem")), "end of the set-up in the background")
    plugin.plugin("uninstall", PLUGIN)
    plugin.plugin("marketplace", "remove", "session-memory")
    assert not plugin.data_dir.exists()
    assert mentions(claude.home, *OUR_STATE_AND_TRANSCRIPTS) == []
    shown(row, "uninstall leaves no trace")


def test_what_reads_the_configuration_sets_itself_up_in_the_background(plugin: ClaudePlugin, tmp_path: Path) -> None:
    index = make_index(tmp_path / "index", plugin.source / "requirements.lock")
    plugin.claude.environment.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index))
    plugin.plugin("install", PLUGIN)
    (said,) = plugin.messages("plan the garden")
    assert said.startswith("session-memory works.")
    assert str(plugin.data_dir) in said
    wait_until(lambda: plugin.note().get("is_made") is True, "environment")
    config = plugin.claude.state_dir().parent / "config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("sessions:\n  '*': {text: false}\n")
    told = plugin.claude.run("who is there?").told
    assert [line.partition(" (")[2] for line in told] == ["just now, 2 messages)"]
    assert plugin.messages("and now?") == []


def test_a_set_up_that_fails_is_not_repeated_with_every_session(plugin: ClaudePlugin) -> None:
    plugin.plugin("install", PLUGIN)
    assert len(plugin.messages("plan the garden")) == 1
    wait_until(lambda: bool(plugin.note().get("problem")), "end of the set-up in the background")
    note = plugin.note()
    assert plugin.messages("who is there?") == []
    assert (note["is_made"], plugin.note()) == (False, note)
    assert len(plugin.claude.run("and now?").told) == 2


def test_a_newer_list_of_packages_is_set_up_anew(plugin: ClaudePlugin, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    start(plugin, data_dir)
    wait_until(lambda: "problem" in (data_dir / "environment.json").read_text(), "first set-up")
    first = json.loads((data_dir / "environment.json").read_text())
    with (plugin.source / "requirements.lock").open("a") as lock_file:
        lock_file.write("# newer\n")
    assert start(plugin, data_dir) == b""
    assert json.loads((data_dir / "environment.json").read_text())["wanted"] != first["wanted"]


@pytest.mark.parametrize("environ", [{}, {"CLAUDE_PLUGIN_DATA": "/proc/nowhere"}, {"SESSION_MEMORY_GUARD": "1"}])
def test_a_start_without_a_data_directory_does_nothing_and_says_nothing(
    plugin: ClaudePlugin, tmp_path: Path, environ: dict[str, str]
) -> None:
    if "SESSION_MEMORY_GUARD" in environ:
        environ = {**environ, "CLAUDE_PLUGIN_DATA": str(tmp_path)}
    before = sorted(tmp_path.iterdir())
    assert run_start(plugin, environ) == b""
    assert sorted(tmp_path.iterdir()) == before


def start(plugin: ClaudePlugin, data_dir: Path) -> bytes:
    return run_start(plugin, {"CLAUDE_PLUGIN_DATA": str(data_dir)})


def run_start(plugin: ClaudePlugin, environ: dict[str, str]) -> bytes:
    """Runs the SessionStart hook as a runtime does; what it prints."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", plugin.source / "hooks/plugin_start.py"], input=b'{"source": "startup"}',
        env={**plugin.claude.environment, **environ}, capture_output=True, timeout=WAIT_SECONDS,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the repository."""
    root = tmp_path_factory.mktemp("wheel")
    copy = copy_repository(root / "copy")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", root / "dist"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=WAIT_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = (root / "dist").iterdir()
    return built


@pytest.fixture
def command(wheel: Path, tmp_path: Path) -> str:
    """The command that `pip install` of the wheel puts on the PATH of an environment, which has nothing else."""
    venv = tmp_path / "venv"
    subprocess.run([PYTHON, "-I", "-m", "venv", "--without-pip", venv], check=True)
    pips = ([python, "-m", "pip", "--python", f"{venv}/bin/python"] for python in (sys.executable, PYTHON))
    for pip in pips:
        if (
            subprocess.run([*pip, "install", "-q", "--no-deps", "--no-index", wheel], capture_output=True).returncode
            == 0
        ):
            return f"{venv}/bin/session-memory"
    pytest.skip("there is no pip of version 22.3 or newer here")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a home of each kind."""
    machine = Machine(tmp_path / "home")
    machine.has_claude_code()
    agent_home(machine.home / "agent")
    return machine


def what_there_is(machine: Machine) -> dict[str, Any]:
    """All files of a machine, without what differs from one install to the next: times, and the private environment."""
    found = {path: value for path, value in tree(machine.home).items() if "/env" not in path and ".pyc" not in path}
    ledger = json.loads((machine.program_dir / "installed.json").read_text())
    for record in ledger["homes"].values():
        assert record.pop("installed_at") >= 0
    found[".local/share/session-memory/installed.json"] = ledger
    return found


def made_by(machine: Machine, program: list[str], install: list[str]) -> dict[str, Any]:
    """What `program` puts into homes that are there, and into new ones."""
    machine.has_environment()
    homes = ["--home", str(machine.claude), "--home", str(machine.home / "agent")]
    for words in ([*install, *homes], ["new", "anna", "--template", "agent-sdk"], ["new", "bert", "--template", "pi"]):
        done = machine.run(*program, *words)
        assert done.returncode == 0, done.stdout + done.stderr
    return what_there_is(machine)


def test_a_wheel_makes_the_same_homes_as_the_repository(machine: Machine, command: str) -> None:
    by_repository = made_by(machine, [PYTHON, str(REPOSITORY / "install.py")], [])
    assert machine.install("--uninstall").returncode == 0
    by_wheel = made_by(machine, [command], ["install"])
    assert by_wheel.keys() == by_repository.keys()
    assert [path for path in by_wheel if by_wheel[path] != by_repository[path]] == []


def test_a_wheel_says_its_version_and_takes_out_what_it_put_in(machine: Machine, command: str) -> None:
    before = tree(machine.home)
    assert machine.run(command, "--version").stdout == f"session-memory {__version__}\n"
    machine.has_environment()
    assert machine.run(command, "install").returncode == 0
    assert "user_prompt_submit.py" in machine.settings.read_text()
    assert machine.run(command, "uninstall").returncode == 0
    left = tree(machine.home)
    assert {path: left[path] for path in left if not path.startswith(".local")} == before


class Elsewhere:
    """Another runtime that takes the plugin, on the machine of somebody who also uses Claude Code in the same project."""

    def __init__(self, runtime: OtherRuntime, source: Path, root: Path) -> None:
        self.runtime = runtime
        self.source = source
        self._log = root / "started.log"
        self._log.touch()
        python = root / "bin" / "python3"
        python.parent.mkdir()
        python.write_text(
            f'#!/bin/sh\nsaid=$("{PYTHON}" "$@")\necho "${{3##*/}} $? <$said>" >> "{self._log}"\nprintf %s "$said"\n'
        )
        python.chmod(0o755)
        runtime.environment["PATH"] = f"{python.parent}:{runtime.environment['PATH']}"
        agent_home(runtime.project)
        self._before = self.written()

    def written(self) -> dict[str, Any]:
        """What there is of ours, in the project that is an agent's home, and in Claude Code's directory."""
        return {**tree(self.runtime.project / ".session-memory"), **tree(self.runtime.home / ".claude")}

    def starts(self) -> list[str]:
        """The hooks that were started since this was last asked: script, exit code and what it printed."""
        lines = self._log.read_text().splitlines()
        self._log.write_text("")
        return lines

    def check_silence(self) -> None:
        """The prompt hook ran, nothing was told to the model, nothing written down: its transcripts are not ours."""
        starts = self.starts()
        assert "user_prompt_submit.py 0 <>" in starts
        assert {start.partition(" ")[2] for start in starts} == {"0 <>"}
        assert not any(r"[Session Activity]\n" in request for request in self.runtime.requests())
        assert self.written() == self._before


@pytest.fixture
def codex(tmp_path: Path) -> Iterator[Elsewhere]:
    with FakeResponses() as model:
        yield elsewhere(Codex, CODEX, tmp_path, model)


@pytest.fixture
def qwen(tmp_path: Path) -> Iterator[Elsewhere]:
    with FakeLLM() as model:
        yield elsewhere(Qwen, QWEN, tmp_path, model)


def elsewhere(kind: type[OtherRuntime], package: str, root: Path, model: LoopbackServer) -> Elsewhere:
    place = installed(package)
    if isinstance(place, str):
        pytest.skip(f"{package}: {place}")
    return Elsewhere(kind(root, place, model), copy_repository(root / "copy"), root)


@pytest.mark.slow
def test_the_plugin_comes_stays_silent_is_updated_and_goes_in_codex(codex: Elsewhere, shown: Shown) -> None:
    row, runtime = "Codex, plugin", codex.runtime
    runtime.execute("plugin", "marketplace", "add", str(codex.source))
    runtime.execute("plugin", "add", PLUGIN)
    shown(row, "install")
    printed = runtime.run("plan the garden")
    assert "hook: UserPromptSubmit Completed" in printed
    codex.check_silence()
    shown(row, "hook fires")
    assert "session-memory:sessions: Look into the other sessions" in runtime.requests()[0]
    shown(row, "skill listed")
    make_next_version(codex.source)
    runtime.execute("plugin", "add", PLUGIN)
    assert NEXT_VERSION in runtime.execute("plugin", "list")
    runtime.run("and now?")
    assert "user_prompt_submit.py 0 <>" in codex.starts()
    shown(row, "update")
    runtime.execute("plugin", "remove", PLUGIN)
    runtime.execute("plugin", "marketplace", "remove", "session-memory")
    assert mentions(runtime.home, ".codex/sessions/", ".codex/logs_", ".codex/thread_history_", ".claude/") == []
    shown(row, "uninstall leaves no trace")


@pytest.mark.slow
def test_the_plugin_comes_stays_silent_is_updated_and_goes_in_qwen_code(qwen: Elsewhere, shown: Shown) -> None:
    row, runtime = "Qwen Code, extension", qwen.runtime
    install = ("extensions", "install", f"{qwen.source}:session-memory", "--consent")
    runtime.execute(*install)
    shown(row, "install")
    runtime.run("plan the garden")
    qwen.check_silence()
    shown(row, "hook fires")
    request = runtime.requests()[0]
    assert "session-memory:sessions" in request
    assert "Look into the other sessions" in request
    shown(row, "skill listed")
    make_next_version(qwen.source)
    runtime.execute("extensions", "uninstall", "session-memory")
    runtime.execute(*install)
    assert f"session-memory ({NEXT_VERSION})" in runtime.execute("extensions", "list")
    shown(row, "update")
    runtime.execute("extensions", "uninstall", "session-memory")
    assert mentions(runtime.home, ".qwen/projects/", ".qwen/extension-store/state.previous.json", ".claude/") == []
    shown(row, "uninstall leaves no trace")


def test_skills_are_put_where_several_runtimes_look_when_that_is_asked(machine: Machine) -> None:
    machine.has_environment()
    homes = ["--home", str(machine.claude), "--home", str(machine.home / "agent")]
    machine.installed(*homes)
    assert not list(machine.home.rglob(".agents"))
    machine.installed("--agents-skills", *homes)
    for directory in (machine.home, machine.home / "agent"):
        assert tree(directory / ".agents/skills") == tree(directory / ".claude/skills")
        assert (directory / ".agents/skills/sessions/SKILL.md").is_file()
    (machine.home / ".agents/skills/sessions/SKILL.md").unlink()
    machine.installed()
    assert (machine.home / ".agents/skills/sessions/SKILL.md").is_file(), "they stay once they were asked for"
    assert machine.install("--uninstall").returncode == 0
    assert not list(machine.home.rglob(".agents"))


def test_an_install_into_the_settings_of_claude_code_works_and_goes(
    tmp_path: Path, api: FakeAnthropic, shown: Shown
) -> None:
    if claude_executable() is None:
        pytest.skip("the wheel of claude-agent-sdk that is installed carries no CLI")
    row, claude = "Claude Code, install.py", Claude(tmp_path, api)
    machine = Machine(claude.home, copy_repository(tmp_path / "copy")).has_environment()
    machine.installed("--home", str(claude.config_dir))
    shown(row, "install")
    claude.run("plan the garden")
    turn = claude.run("who is there?")
    assert [line.partition('"')[2] for line in turn.told] == ['plan the garden"; last: "ok (1)"']
    shown(row, "hook fires")
    assert turn.request is not None
    assert "- sessions: Look into the other sessions" in turn.request.text
    shown(row, "skill listed")
    make_next_version(machine.source)
    machine.installed()
    turn = claude.run("and now?")
    assert turn.request is not None
    assert f"{NEXT_WORDS}:\n[Session Activity]\n" in turn.request.text
    shown(row, "update")
    assert machine.install("--uninstall").returncode == 0
    assert mentions(claude.home, *OUR_STATE_AND_TRANSCRIPTS) == []
    shown(row, "uninstall leaves no trace")


def test_the_package_comes_works_is_updated_and_goes_in_pi(tmp_path: Path, shown: Shown) -> None:
    if pi_command() is None:
        pytest.skip("there is no npm here to install Pi with")
    with FakeLLM() as model:
        row, pi, source = "Pi, package", Pi(tmp_path, model), copy_repository(tmp_path / "copy")
        pi.execute("install", str(source))
        shown(row, "install")
        pi.run("plan the garden")
        turn = pi.run("who is there?")
        assert [line.partition(" (")[0] for line in turn.told] == ["- plan the garden"]
        shown(row, "hook fires")
        assert turn.request is not None
        assert "Look into the other sessions" in json.dumps(turn.request.body["system"])
        shown(row, "skill listed")
        make_next_version(source)  # a local package is used in place
        turn = pi.run("and now?")
        assert turn.request is not None
        assert f"{NEXT_WORDS}:\n[Session Activity]\n" in turn.request.text
        shown(row, "update")
        pi.execute("remove", str(source))
        assert mentions(pi.home, ".pi/agent/sessions/", ".pi/agent/.session-memory/") == []
        shown(row, "uninstall leaves no trace")
