"""A machine to install on, with a home directory, agent homes, and copies of the repository."""

from __future__ import annotations

import atexit
import functools
import hashlib
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import records
import share
from own_process import run_here

from bench.scratch import remove_tree
from session_memory.app.install import _checks as checks
from session_memory.app.install import _installation as installation
from session_memory.app.install import command, package_checks, program, program_checks
from session_memory.app.install._homes import Target
from session_memory.app.install._trial import fault_at_start
from session_memory.app.install.environment import PARTS, Environment
from session_memory.app.install.program import ensure_app, has_usable_bundle
from session_memory.awareness.events import bundle
from session_memory.common.system.entry_points import PackageScan, scanned
from session_memory.common.system.files import lock
from session_memory.sessions.settings.program import ProgramPaths

REPOSITORY = Path(__file__).resolve().parent.parent
PYTHON = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
NOBODY_LISTENS = "http://127.0.0.1:9/"
RUN_SECONDS = 120
HOUR = 3600
# Settings of a user with a hook of their own.
# The install says so, and leaves Codex without tools: test_servers.py.
reads_toml = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="before Python 3.11 the install reads no TOML"
)
MINE = '{\n    "model": "opus",\n    "hooks": {\n        "Stop": [{"hooks": [{"type": "command", "command": "x"}]}]\n    }\n}\n'

TEMPLATES = ("agent-sdk", "pi")
AGENTS = {"agent-sdk": "agent.py", "pi": "agent"}
MANIFESTS = (".claude-plugin/plugin.json", ".codex-plugin/plugin.json", "qwen-extension.json")
PACKAGE_OF_PLUGIN = ".claude-plugin/package"
PARTS_OF_PLUGIN = {
    ".claude-plugin",
    ".codex-plugin",
    ".mcp.json",
    "CHANGELOG.md",
    "LICENSE",
    "hooks",
    "qwen-extension.json",
    "requirements.lock",
    "scripts",
    "session_memory",
    "skills",
}
_faults: dict[str, str] = {}  # of the hooks that were started, by their command
NEXT_VERSION = "9.9.9"
NEXT_WORDS = "What a later version says"
_PARTS = (
    ".agents",
    ".ci",
    ".claude-plugin",
    ".codex-plugin",
    ".mcp.json",
    "hooks",
    "scripts",
    "session_memory",
    "skills",
    "templates",
    "tests/sessions/runtimes/fixtures",  # which a wheel has
    "install.py",
    "requirements.lock",
    "server.json",
    "pyproject.toml",
    "LICENSE",
    "README.md",
    "CHANGELOG.md",
    "package.json",
    "qwen-extension.json",
)


@dataclass
class Machine:
    """`home` is HOME; `source` the copy of the repository that is installed from. With
    `keeps_program` an install puts the hooks and skills of `source` there, and leaves the program
    as it is. Unless it `starts_each_hook`, its doctor starts a hook of the program that all tests
    share only once in a process, and no process looks at the program's bundle."""

    home: Path
    source: Path = REPOSITORY
    keeps_program: bool = False
    starts_each_hook: bool = False

    @property
    def program_dir(self) -> Path:
        return self.home / ".local" / "share" / "session-memory"

    @property
    def claude(self) -> Path:
        return self.home / ".claude"

    @property
    def settings(self) -> Path:
        return self.claude / "settings.json"

    @property
    def environ(self) -> dict[str, str]:
        """What a login has, and no package index that could be reached."""
        return {
            "HOME": str(self.home),
            "PATH": f"{self.home}/.local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "PIP_INDEX_URL": NOBODY_LISTENS,
            "PIP_RETRIES": "0",
            "PIP_CONFIG_FILE": os.devnull,
        }

    def run(
        self, *words: str, cwd: Path | None = None, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command on this machine."""
        return subprocess.run(
            words,
            env={**self.environ, **environ},
            cwd=cwd or self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )

    def install(
        self, *options: str, cwd: Path | None = None, examples: bool = False, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs install.py: that of the repository in this process, which spares its start, and
        without the `examples` unless they are asked for: each is made by a process of its own."""
        script = str(self.source / "install.py")
        if self.source != REPOSITORY and not self.keeps_program:
            return self.run(PYTHON, script, *options, cwd=cwd, **environ)
        install = functools.partial(command.main, script)
        with pytest.MonkeyPatch.context() as patched:
            for name in () if examples else ("sample_update", "last_meeting"):
                patched.setattr(command, name, lambda _: None)
            patched.setattr(package_checks, "scanned", _scanned)
            if not self.starts_each_hook:
                patched.setattr(program, "has_usable_bundle", _has_usable_bundle)
            if self.keeps_program:
                patched.setattr(installation, "source_dir", lambda: self.source)
                patched.setattr(program, "ensure_app", lambda *_: False)
            return run_here(
                [*options], {**self.environ, **environ}, cwd or self.home, install, script
            )

    def installed(self, *options: str, cwd: Path | None = None) -> dict[str, Any]:
        """The JSON result of an install that has to succeed."""
        done = self.install("--json", *options, cwd=cwd)
        assert done.returncode == 0, done.stdout + done.stderr
        return dict(json.loads(done.stdout))

    def doctor(self, *options: str, **environ: str) -> tuple[int, dict[str, str]]:
        """The exit code of `session-memory doctor`, and what it found wrong: what to do about it,
        by the finding."""
        done = self.run_doctor("--json", *options, **environ)
        assert done.stdout, done.stderr
        findings = json.loads(done.stdout)["findings"]
        return done.returncode, {f["text"]: f["mend"] for f in findings if f["state"] == "wrong"}

    def run_doctor(
        self, *options: str, cwd: Path | None = None, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs `session-memory doctor` in this process."""
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(package_checks, "scanned", _scanned)
            if not self.starts_each_hook:
                patched.setattr(checks, "fault_at_start", _fault_at_start)
                patched.setattr(program_checks, "has_usable_bundle", _has_usable_bundle)
            return run_here(["doctor", *options], {**self.environ, **environ}, cwd or self.home)

    def has_environment(self) -> Machine:
        """Puts a private environment there, as an install with a package index leaves it, but for
        the packages."""
        env = self.program_dir / "env"
        make_bare_environment(env)
        record = {
            "pins": pins_of(self.source),
            "version": ".".join(map(str, sys.version_info[:3])),
            "groups": [*PARTS, "sdk"],
        }
        (env / "session-memory.json").write_text(json.dumps(record))
        return self

    def has_program(self, *, is_own: bool = False) -> Machine:
        """Puts the compiled program there, as an install leaves it: compiling it takes longer than
        all else. Unless it `is_own`, it is a link to one that all tests share."""
        self.program_dir.mkdir(parents=True, exist_ok=True)
        shared, link = (compiled_program() / "app").resolve(), self.program_dir / "app"
        link.unlink(missing_ok=True)
        if is_own:
            shutil.copytree(shared, self.program_dir / shared.name)
        link.symlink_to(shared.name if is_own else os.path.relpath(shared, self.program_dir))
        return self

    def has_claude_code(self, project: str = "/srv/shop") -> Path:
        """Two sessions of Claude Code in one project, an hour and five minutes old; returns where they lie."""
        directory = self.claude / "projects" / re.sub("[^A-Za-z0-9]", "-", project)
        for minutes, question, answer in (
            (60, "why is the cart empty?", "A cookie."),
            (5, "ship it", "Shipped."),
        ):
            then = time.time() - minutes * 60
            path = directory / f"{records.new_id()}.jsonl"
            records.write(path, *records.exchange(question, answer, at=then, cwd=project))
            os.utime(path, (then, then))
        return directory

    def hook_command(self, settings: Path | None = None) -> str:
        """The command that stands in the settings for a prompt."""
        hooks = json.loads((settings or self.settings).read_bytes())["hooks"]["UserPromptSubmit"]
        commands = [entry["command"] for group in hooks for entry in group["hooks"]]
        assert len(commands) == 1, commands
        return str(commands[0])

    def prompt(self, project_dir: Path, session_id: str, cwd: str = "/srv/shop") -> str:
        """What the installed hook tells a prompt of a session; '' for nothing."""
        event = {
            "session_id": session_id,
            "transcript_path": f"{project_dir}/{session_id}.jsonl",
            "cwd": cwd,
            "hook_event_name": "UserPromptSubmit",
            "prompt": "hello",
        }
        done = subprocess.run(
            ["/bin/sh", "-c", self.hook_command()],
            input=json.dumps(event),
            env=self.environ,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), done
        return (
            str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"])
            if done.stdout
            else ""
        )


def _scanned(python: str) -> PackageScan:
    """What packages of `python` bring, which is asked only if it has packages: each answer takes a
    process of 40 ms."""
    env = Path(python).parent.parent
    if list(env.glob("lib/python*/site-packages/*")) or not (env / "pyvenv.cfg").exists():
        return scanned(python)
    return PackageScan(str(env), {})


def _has_usable_bundle(app: Path, python: str) -> bool:
    """Whether `python` loads the bundle, which this process says for the same interpreter: a start
    takes seven times as long as the check."""
    if os.path.realpath(python) == PYTHON:
        return bundle.has_usable_bundle(str(app))
    return has_usable_bundle(app, python)


def _fault_at_start(target: Target, command: str, environ: Mapping[str, str]) -> str:
    """Why a hook's command does not start: what it was the first time, if it is one of the program
    that all tests share."""
    scripts = [word for word in shlex.split(command) if word.endswith(".py")]
    shared = str((compiled_program() / "app").resolve())
    if not all(os.path.realpath(script).startswith(f"{shared}/") for script in scripts):
        return fault_at_start(target, command, environ)
    known = command.replace(environ["HOME"], "~")
    if known not in _faults:
        _faults[known] = fault_at_start(target, command, environ)
    return _faults[known]


def pins_of(source: Path) -> str:
    """Return what an environment's record says of the packages that a copy pins."""
    return hashlib.sha256((source / "requirements.lock").read_bytes()).hexdigest()


def make_bare_environment(env: Path) -> None:
    """Make a virtual environment without any package: a copy of one that is made once for all tests
    of a process."""
    shutil.copytree(_bare_environment(), env, symlinks=True, dirs_exist_ok=True)


@functools.cache
def _bare_environment() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="session-memory-tests-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    subprocess.run(
        [PYTHON, "-I", "-m", "venv", "--without-pip", str(directory / "env")], check=True
    )
    return directory / "env"


@contextmanager
def _shared_directory() -> Iterator[Path]:
    """A directory of all processes that run tests, which the others leave alone meanwhile."""
    directory = Path(os.environ[share.DIRECTORY])
    descriptor = lock(str(directory / "lock"), RUN_SECONDS)
    try:
        yield directory
    finally:
        os.close(descriptor)


@functools.cache
def compiled_program() -> Path:
    """A directory with `app/`, made of this repository once for all processes that run tests."""
    version = ".".join(map(str, sys.version_info[:3]))
    with _shared_directory() as directory:
        ensure_app(
            ProgramPaths(directory, directory / "bin"),
            REPOSITORY,
            Environment(PYTHON, version, "ready"),
        )
        return directory


@functools.cache
def _compiled_repository() -> Path:
    """A copy of the repository whose modules are compiled, made once for all these processes. What
    is compiled counts for sources of the same content."""
    with _shared_directory() as directory:
        copy = directory / "repository"
        if not copy.exists():
            made = copy_repository(directory / "repository-new")
            compiled = [made / part for part in ("session_memory", "hooks", "scripts")]
            command = [PYTHON, "-I", "-m", "compileall", "-q"]
            command += ["--invalidation-mode", "checked-hash"]
            subprocess.run([*command, *compiled], check=True)
            made.rename(copy)
        return copy


def tree(directory: Path) -> dict[str, Any]:
    """All that lies below a directory: content and mode of files, targets of links, by path."""
    found: dict[str, Any] = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = (path.stat().st_mode, path.read_bytes() if path.is_file() else None)
    return found


def agent_home(root: Path, *, memory_dir: str = ".session-memory", workdir: str = "") -> Path:
    """An agent home with the sessions main and discord, whose transcripts lie where its runtime was started."""
    home = records.NamedHome(root, memory_dir)
    home.session("main", *records.exchange("plan the day", "Planned.", at=time.time() - HOUR))
    home.session("discord", *records.exchange("is it up?", "It is.", at=time.time() - 60))
    if workdir:
        (root / workdir).mkdir()
        (root / ".claude").rename(root / workdir / ".claude")
    return root


def used_machine(home: Path) -> Machine:
    """A machine that has the environment and the program already, and where Claude Code was used."""
    machine = Machine(home).has_environment().has_program()
    machine.has_claude_code()
    return machine


def installed_machine(*folders: str) -> Machine:
    """A used machine after an install, with these folders of other runtimes, at the same path for
    all tests of a process, each time as the install left it."""
    home, kept = _installed_home(*folders)
    subprocess.run(["chmod", "-R", "u+rwX", home], check=True)
    remove_tree(home)
    shutil.copytree(kept, home, symlinks=True)
    machine = Machine(home)
    remove_tree(machine.claude / "projects")
    machine.has_claude_code()
    return machine


@functools.cache
def _installed_home(*folders: str) -> tuple[Path, Path]:
    """A home directory after an install, and a copy of it."""
    root = Path(tempfile.mkdtemp(prefix="session-memory-tests-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    machine = used_machine(root / "home")
    for folder in folders:
        (machine.home / folder).mkdir()
    done = machine.install()
    assert (done.returncode, done.stderr) == (0, ""), done
    shutil.copytree(root / "home", root / "kept", symlinks=True)
    return root / "home", root / "kept"


def at_a_terminal(machine: Machine, answer: str, *options: str) -> str:
    """What an install draws on a terminal where somebody answers its question."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(PYTHON, [PYTHON, str(machine.source / "install.py"), *options], machine.environ)
    drawn = b""
    while True:
        try:
            block = os.read(terminal, 4096)
        except OSError:
            break
        if not block:
            break
        drawn += block
        if block.endswith(b"[y/N] "):
            os.write(terminal, answer.encode() + b"\n")
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, drawn.decode()
    return drawn.decode()


def told(result: dict[str, object]) -> list[str]:
    """What the next prompt of each home would be told, by the JSON result of an install."""
    homes = result["homes"]
    assert isinstance(homes, list)
    return [home["trial"]["text"] for home in homes]


def new(machine: Machine, *words: str) -> subprocess.CompletedProcess[str]:
    return machine.install("new", *words)


def new_home(machine: Machine, template: str, name: str = "anna") -> Path:
    """A new home of a template."""
    done = new(machine, name, "--template", template)
    assert (done.returncode, done.stderr) == (0, ""), done
    return machine.home / name


def prepared_machine(home: Path) -> Machine:
    """A machine that has the environment and the program already."""
    home.mkdir(exist_ok=True)
    return Machine(home).has_environment().has_program()


def mentions(directory: Path, *but: str) -> list[str]:
    """The files below a directory that name us, in their path or content, except below the paths
    `but`, and below what Claude Code has marked for its own removal, some days from now."""
    but += tuple(
        str(mark.parent.relative_to(directory)) for mark in directory.rglob(".orphaned_at")
    )
    found = []
    for path in sorted(directory.rglob("*")):
        relative = str(path.relative_to(directory))
        if relative.startswith(but) or (path.is_dir() and not path.is_symlink()):
            continue
        if "session-memory" in relative or (
            path.is_file() and b"session-memory" in path.read_bytes()
        ):
            found.append(relative)
    return found


def copy_repository(to: Path) -> Path:
    """A copy of what is published, without what development leaves lying around."""
    to.mkdir(parents=True)
    for part in _PARTS:
        source = REPOSITORY / part
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "node_modules")
            shutil.copytree(source, to / part, symlinks=True, ignore=ignored)
        elif source.is_file():
            shutil.copy2(source, to / part)
    return to


def compiled_copy_of_repository(to: Path) -> Path:
    """Such a copy from which a client runs hooks: to compile it takes the first of them longer than
    their work."""
    return Path(shutil.copytree(_compiled_repository(), to, symlinks=True))


def leave_development_files(repository: Path) -> None:
    """Add what a clone has and no user of the plugin needs."""
    for folder in (
        "tests",
        "bench",
        "docs",
        "findings",
        "templates",
        ".git",
        "session_memory/__pycache__",
    ):
        (repository / folder).mkdir(exist_ok=True)
        (repository / folder / "development").touch()


def top_of(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def write_marketplace(repository: Path) -> Path:
    """Write the marketplace that is published on the branch `plugin`, beside a copy of the repository."""
    directory = repository.with_name("marketplace")
    done = subprocess.run(
        [PYTHON, repository / ".ci" / "plugin.py", directory],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def directory_of(directory: Path, programs: dict[str, str | None]) -> Path:
    """A directory for the PATH with these programs by their names."""
    directory.mkdir()
    for name, target in programs.items():
        (directory / name).write_text(f'#!/bin/sh\nexec "{target}" "$@"\n')
        (directory / name).chmod(0o755)
    return directory


def make_next_version(copy: Path) -> None:
    """Makes a later version of a copy, which tells the same with other words."""
    for manifest in MANIFESTS:
        (copy / manifest).write_text(
            json.dumps({**json.loads((copy / manifest).read_text()), "version": NEXT_VERSION})
        )
    for name, old, new in (
        ("__init__.py", r'__version__ = ".*"', f'__version__ = "{NEXT_VERSION}"'),
        (
            "sessions/transcripts/entries.py",
            r'INTRODUCTION = ".*"',
            f'INTRODUCTION = "{NEXT_WORDS}:\\\\n"',
        ),
    ):
        module = copy / "session_memory" / name
        text, count = re.subn(old, new, module.read_text())
        assert count == 1, f"{name} has changed: {old} is not in it"
        module.write_text(text)


def make_index(directory: Path, lock_file: Path) -> Path:
    """Wheels of what a plugin sets up for itself, made from the modules installed here, in pinned versions."""
    directory.mkdir()
    pins = dict(re.findall(r"^([a-z-]+)==(\S+)", lock_file.read_text(), re.MULTILINE))
    for name in (*PARTS["basic"], *PARTS["store"]):
        info = f"{name}-{pins[name]}.dist-info"
        with zipfile.ZipFile(directory / f"{name}-{pins[name]}-py3-none-any.whl", "w") as wheel:
            for file in distribution(name).files or []:
                if (
                    ".dist-info" not in str(file)
                    and "__pycache__" not in str(file)
                    and ".." not in file.parts
                ):
                    wheel.write(str(file.locate()), str(file))
            written = wheel.namelist()
            wheel.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {pins[name]}\n"
            )
            wheel.writestr(
                f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            names = [*written, f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD"]
            wheel.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in names))
    return directory
