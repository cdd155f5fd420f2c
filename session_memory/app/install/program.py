"""The installed program: a compiled copy of the repository's parts, and the command that runs it.

The copy is replaced in one step.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ... import NAME
from ...awareness.install.ledger import InstallLedger
from ...common.errors import LockedError, SessionMemoryError
from ...common.system.file_changes import (
    missing_directories,
    read_if_there,
    remove_if_empty,
    write_in_place,
)
from ...common.system.files import lock
from ...common.system.terminal import Terminal
from ...sessions.settings.program import PACKAGED, ProgramPaths, package_dir
from ._program_directory import remove_replaced, replace_directory
from .environment import PARTS, Environment, ensure_environment, minor

PACKAGE = "session_memory"
LOCK_FILE = "requirements.lock"
_PARTS = (PACKAGE, "hooks", "scripts", "skills", "templates", "install.py", LOCK_FILE)
_NEEDED = (PACKAGE, "hooks/hooks.json", LOCK_FILE)
_COMPILED = (PACKAGE, "hooks", "scripts")
LOCK_WAIT_SECONDS = 10
_STAMP_FILE = ".stamp"
_LOCK_NAME = "install.lock"
# The files that we may have in the program's directory, except the ledger.
_REMOVED = (
    "app",
    "app-*",
    "app.new",
    "env",
    "env-*",
    "env.new",
    "bin",
    "sample-home",
    ".*.tmp",
    _LOCK_NAME,
)


@dataclass(frozen=True)
class InstalledProgram:
    """The program after an install, and which of its parts are new."""

    environment: Environment
    is_app_changed: bool
    is_link_made: bool


def check_source(source: Path) -> None:
    """Raise SessionMemoryError unless `source` is a complete copy of the repository."""
    for part in _NEEDED:
        if not _lies_at(source, part).exists():
            raise SessionMemoryError(
                f"{source}: {part} is missing",
                "run install.py from a complete copy of the repository",
            )


def check_name(paths: ProgramPaths) -> None:
    """Raise SessionMemoryError if settings, which are UTF-8, cannot name the program."""
    name = str(paths.program_dir)
    if name != name.encode("utf-8", "replace").decode():
        shown = name.encode("utf-8", "backslashreplace").decode()
        raise SessionMemoryError(
            f"{shown}: its path is not UTF-8, so settings cannot name it",
            "set XDG_DATA_HOME to a directory whose path is UTF-8",
        )


@contextmanager
def locked(paths: ProgramPaths) -> Iterator[list[Path]]:
    """Keep other installs and uninstalls out of the program's directory, which is created for it.

    Yield the directories above it and above the command that did not exist before. Wait for a
    running install; raise LockedError after LOCK_WAIT_SECONDS."""
    path = paths.program_dir / _LOCK_NAME
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    made: list[Path] = []
    while True:
        made += [
            *missing_directories(paths.program_dir.parent),
            *missing_directories(paths.bin_dir),
        ]
        try:
            paths.program_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = lock(str(path), max(0.0, deadline - time.monotonic()))
        except LockedError:
            raise LockedError(
                f"{paths.program_dir}: another install is running", "wait for it to end"
            ) from None
        except FileNotFoundError:  # an uninstall has just removed the directory
            continue
        if _is_at(descriptor, path):
            break
        # An uninstall has removed the lock file, so the next process would lock another file.
        os.close(descriptor)
    try:
        yield made
    finally:
        os.close(descriptor)


def note_directories(made: list[Path], ledger: InstallLedger) -> None:
    """Note in the ledger the directories that will be made, before anything else is made."""
    new = [path for path in dict.fromkeys(str(path) for path in made) if path not in ledger.made]
    ledger.made += new
    if new or not ledger.path.exists():
        ledger.save()


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def ensure_program(
    paths: ProgramPaths, source: Path, terminal: Terminal, extras: Collection[str] = ()
) -> InstalledProgram:
    """Install or update the program, with `extras`. Raises SessionMemoryError, OSError."""
    environment = ensure_environment(paths, source / LOCK_FILE, terminal, (*PARTS, *extras))
    is_app_changed = ensure_app(paths, source, environment)
    content = launcher_text(environment.python, paths.app).encode()
    if read_if_there(paths.launcher) != content:
        paths.launcher.parent.mkdir(parents=True, exist_ok=True)
        write_in_place(paths.launcher, content)
        paths.launcher.chmod(0o755)
    is_link_made = not is_our_link(paths) and not link_problem(paths)
    if is_link_made:
        paths.bin_dir.mkdir(parents=True, exist_ok=True)
        paths.link.symlink_to(paths.launcher)
    return InstalledProgram(environment, is_app_changed, is_link_made)


def is_current(paths: ProgramPaths, source: Path, version: str) -> bool:
    """Check if `app/` is a copy of `source`, compiled for a Python of this version."""
    return read_if_there(paths.app / _STAMP_FILE) == _stamp(source, version).encode()


def ensure_app(paths: ProgramPaths, source: Path, environment: Environment) -> bool:
    """Copy `source` to `app/` and compile it for the hooks' interpreter.

    Return False if it is already up to date."""
    if is_current(paths, source, environment.version):
        if not has_usable_bundle(paths.app, environment.python):
            _run_bundle(paths.app, environment.python, "bundle.write_bundle(sys.argv[1])")
        return False
    stamp = _stamp(source, environment.version)
    built = paths.program_dir / f"app-{stamp[:12]}"
    # Hooks may still run from the current copy, so it stays until the next update.
    remove_replaced(paths.app)
    shutil.rmtree(built, ignore_errors=True)
    for name, path in _files(source):
        copy = built / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    compiled = [str(built / part) for part in _COMPILED if (built / part).is_dir()]
    done = subprocess.run(
        [environment.python, "-I", "-S", "-m", "compileall", "-q", *compiled],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise SessionMemoryError(
            f"{source}: it cannot be compiled: {(done.stdout + done.stderr).strip()}"
        )
    _run_bundle(built, environment.python, "bundle.write_bundle(sys.argv[1])")
    (built / _STAMP_FILE).write_text(stamp)
    replace_directory(built, paths.app)
    return True


def has_usable_bundle(app: Path, python: str) -> bool:
    """Check if `python` loads the modules of a prompt from one file.

    Hooks also work without this bundle, but start more slowly."""
    return _run_bundle(app, python, "sys.exit(not bundle.has_usable_bundle(sys.argv[1]))")


def _run_bundle(app: Path, python: str, call: str) -> bool:
    """Run `call` of the app's module `bundle` in the hooks' interpreter; return if it succeeded."""
    # The garbage collector would look at the syntax trees again and again, a third of the time.
    code = (
        f"import gc, sys; gc.disable(); sys.path.insert(0, sys.argv[1]); from "
        f"session_memory.awareness.events import bundle; {call}"
    )
    words = [python, "-I", "-S", "-c", code, str(app)]
    return (
        subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode
        == 0
    )


def launcher_text(python: str, app: Path) -> str:
    """Return the script that is the command `session-memory`.

    It sets `sys.path` itself, because importing `site` takes longer. It uses the program and
    packages that the links `app` and `env` point to when it starts. If its interpreter is gone, it
    runs with another one, which lets `doctor` report this."""
    # Ctrl-C must not print a traceback while the command starts; later, commands handle it. `main`
    # has flushed its output, and freeing all objects at exit would take half of a bare start.
    quiet = "import sys, _signal; _signal.getsignal(2) == 1 or _signal.signal(2, 0)"
    start = "from session_memory.cli import main; import os; os._exit(main())"
    if os.name == "nt":
        code = f"{quiet}; sys.path.insert(0, sys.argv.pop(1)); del sys.argv[0]; {start}"
        return f'@"{python}" -I -c "{code}" "{app}" "%~f0" %*\r\n'
    # without `site` Python does not know of its environment
    prefix = os.path.dirname(os.path.dirname(python))
    paths = (
        "sys.path += map(realpath, (sys.argv[1], sys.argv[2] % sys.version_info[:2])); del "
        "sys.argv[:3]"
    )
    return (
        Path(__file__)
        .with_name("launcher.sh")
        .read_text()
        .format(
            name=NAME,
            python=shlex.quote(python),
            app=shlex.quote(str(app)),
            packages=shlex.quote(f"{prefix.replace('%', '%%')}/lib/python%d.%d/site-packages"),
            code=shlex.quote(f"{quiet}; from os.path import realpath; {paths}; {start}"),
        )
    )


def link_problem(paths: ProgramPaths) -> str:
    """Return why the command's link cannot be made; '' if it can be or already exists."""
    if os.name == "nt":
        return f"put {paths.launcher.parent} on your PATH to use the command {paths.launcher.name}"
    if is_our_link(paths) or not os.path.lexists(paths.link):
        return ""
    return (
        f"{paths.link} belongs to another program and was left alone; run {paths.launcher} instead"
    )


def is_our_link(paths: ProgramPaths) -> bool:
    """Check if the link exists and leads to our launcher."""
    return paths.link.is_symlink() and os.readlink(paths.link) == str(paths.launcher)


def command_path(paths: ProgramPaths) -> Path:
    """Return the path that runs the command: its link, or the launcher if the link is not ours."""
    return paths.link if is_our_link(paths) else paths.launcher


def remove_program(paths: ProgramPaths, ledger: InstallLedger) -> None:
    """Remove our files in the program's directory, the ledger last, and directories made for
    them."""
    if is_our_link(paths):
        paths.link.unlink()
    for pattern in _REMOVED:
        for path in paths.program_dir.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    paths.ledger_file.unlink(missing_ok=True)
    remove_if_empty(paths.program_dir)
    for made in reversed(ledger.made):
        remove_if_empty(Path(made))


def _files(source: Path) -> Iterator[tuple[str, str]]:
    """Yield the program's files in a fixed order: their paths in a copy of the repository, and
    where they are."""
    for part in _PARTS:
        place = str(_lies_at(source, part))
        if os.path.isfile(place):
            yield part, place
        for directory, names, files in os.walk(place):
            names[:] = sorted(name for name in names if name not in ("__pycache__", PACKAGED))
            for file in sorted(files):
                path = f"{directory}/{file}"
                yield part + path[len(place) :], path


def _lies_at(source: Path, path: str) -> Path:
    """Return the source of a file with this path in the repository.

    In a wheel, the package's own directory contains the other parts."""
    first, *inner = Path(path).parts
    return (
        package_dir().joinpath(*inner)
        if source.name == PACKAGED and first == PACKAGE
        else source / path
    )


def _stamp(source: Path, version: str) -> str:
    """Return a checksum of everything the copy depends on: all files, and the version of Python."""
    sum_of_all = hashlib.sha256(minor(version).encode())
    for name, path in _files(source):
        with open(path, "rb", 0) as file:
            content = file.read()
        sum_of_all.update(
            f"\0{name}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content
        )
    return sum_of_all.hexdigest()
