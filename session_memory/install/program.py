"""The program itself: a compiled copy of the repository's parts, replaced in one step, and the command that runs it."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ..errors import SessionMemoryError
from .environment import Environment
from .file_changes import missing_directories, read_if_there, write_in_place
from .interpreter import minor
from .ledger import Ledger
from .places import PACKAGED, Places, package_dir, put_in_place, remove_others

PACKAGE = "session_memory"
PARTS = ("session_memory", "hooks", "scripts", "skills", "templates", "install.py", "requirements.lock")
_NEEDED = ("session_memory", "hooks/hooks.json", "requirements.lock")
_COMPILED = ("session_memory", "hooks", "scripts")
_STAMP_FILE = ".stamp"


class IncompleteSourceError(SessionMemoryError):
    """The files to install are not all there, or cannot be compiled."""


def make_program_dir(places: Places, ledger: Ledger) -> None:
    """Makes the directory of the program, and notes in the ledger what was not there before."""
    missing = [*missing_directories(places.program_dir.parent), *missing_directories(places.bin_dir)]
    new = [path for path in dict.fromkeys(str(path) for path in missing) if path not in ledger.made]
    ledger.made += new
    places.program_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if new or not places.ledger_file.exists():
        ledger.save()


def check_source(source: Path) -> None:
    """Raises IncompleteSourceError unless `source` is a copy of the repository."""
    for part in _NEEDED:
        if not _lies_at(source, part).exists():
            raise IncompleteSourceError(
                f"{source}: {part} is not there", "run install.py from a whole copy of the repository"
            )


def is_current(places: Places, source: Path, version: str) -> bool:
    """Whether `app/` holds what `source` holds, compiled for a Python of this version."""
    return read_if_there(places.app / _STAMP_FILE) == _stamp(source, version).encode()


def ensure_app(places: Places, source: Path, environment: Environment) -> bool:
    """Has `app/` hold what `source` holds, compiled for the hooks' interpreter; returns whether it had to change."""
    if is_current(places, source, environment.version):
        return False
    stamp = _stamp(source, environment.version)
    built = places.program_dir / f"app-{stamp[:12]}"
    remove_others(places.app)  # what a hook may be running is the current one, and stays until the next time
    shutil.rmtree(built, ignore_errors=True)
    for path in _files(source):
        copy = built / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_lies_at(source, path), copy)
    compiled = [str(built / part) for part in _COMPILED if (built / part).is_dir()]
    done = subprocess.run(
        [environment.python, "-I", "-S", "-m", "compileall", "-q", *compiled],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    if done.returncode:
        raise IncompleteSourceError(f"{source}: it cannot be compiled: {(done.stdout + done.stderr).strip()}")
    (built / _STAMP_FILE).write_text(stamp)
    put_in_place(built, places.app)
    return True


def launcher_text(python: str, app: Path) -> str:
    """The script behind the command `session-memory`. It does what `site` would do, in less time."""
    start = "from session_memory.cli import main; sys.exit(main())"
    if os.name == "nt":
        code = f"import sys; sys.path.insert(0, sys.argv.pop(1)); {start}"
        return f'@"{python}" -I -c "{code}" "{app}" %*\r\n'
    prefix = os.path.dirname(os.path.dirname(python))  # without site Python does not know of its environment
    code = f"import sys; sys.path[:0] = [sys.argv.pop(1), sys.argv.pop(1) % sys.version_info[:2]]; {start}"
    packages = f"{prefix.replace('%', '%%')}/lib/python%d.%d/site-packages"
    words = [python, "-I", "-S", "-c", code, str(app), packages]
    return f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'


def ensure_launcher(places: Places, python: str) -> bool:
    """Has the launcher run the installed program; returns whether it had to change."""
    content = launcher_text(python, places.app).encode()
    if read_if_there(places.launcher) == content:
        return False
    places.launcher.parent.mkdir(parents=True, exist_ok=True)
    write_in_place(places.launcher, content)
    places.launcher.chmod(0o755)
    return True


def link_problem(places: Places) -> str:
    """Why the command's link cannot be made; '' if it can, or stands already."""
    if os.name == "nt":
        return f"put {places.launcher.parent} on the PATH to have the command {places.launcher.name}"
    if is_our_link(places) or not os.path.lexists(places.link):
        return ""
    return f"{places.link} is something else and was left alone; the command is {places.launcher}"


def is_our_link(places: Places) -> bool:
    """Whether the link is there and leads to our launcher."""
    return places.link.is_symlink() and os.readlink(places.link) == str(places.launcher)


def ensure_link(places: Places) -> bool:
    """Makes the link where nothing stands in its place; returns whether it had to be made."""
    if is_our_link(places) or link_problem(places):
        return False
    places.bin_dir.mkdir(parents=True, exist_ok=True)
    places.link.symlink_to(places.launcher)
    return True


def _files(source: Path) -> Iterator[Path]:
    """What belongs to the program, as paths in a copy of the repository, in a fixed order."""
    for part in PARTS:
        path = _lies_at(source, part)
        if path.is_file():
            yield Path(part)
        for directory, names, files in os.walk(path):
            names[:] = sorted(name for name in names if name not in ("__pycache__", PACKAGED))
            for file in sorted(files):
                yield part / Path(directory, file).relative_to(path)


def _lies_at(source: Path, path: str | Path) -> Path:
    """Where a path in a copy of the repository lies: in a wheel the package is not beside the rest, but around it."""
    first, *rest = Path(path).parts
    return package_dir().joinpath(*rest) if source.name == PACKAGED and first == PACKAGE else source / path


def _stamp(source: Path, version: str) -> str:
    """What the copy is made from, in short: every file, and the Python it is compiled for."""
    sum_of_all = hashlib.sha256(minor(version).encode())
    for path in _files(source):
        content = _lies_at(source, path).read_bytes()
        sum_of_all.update(f"\0{path.as_posix()}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content)
    return sum_of_all.hexdigest()
