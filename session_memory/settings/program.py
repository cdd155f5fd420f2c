"""The paths of the program: the installed copy, its environment, and the source of an install."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import session_memory
from session_memory import NAME

from ..runtimes import all_runtimes
from .homes import person_home, required_user_dir
from .yaml_file import ENV_DATA, SHARED_FOLDER, add_site_packages

PACKAGED = "packaged"  # in a wheel: the directory in the package that holds what lies beside it in the repository
LEDGER_NAME = "installed.json"
_NOT_LOADED = ("host.", "memories.strategies.graphiti", PACKAGED, "testing")
_ALWAYS_INSTALLED = ("", "page")  # by an install, which knows only the larger extras
_EXTRA_OF = {
    "claude_agent_sdk": "sdk", "croniter": "sdk", "graphiti_core": "graphiti", "jinja2": "page", "markdown_it": "page",
    "psycopg": "team", "pygments": "page", "starlette": "page", "uvicorn": "page",
}  # fmt: skip


class ProgramPaths:
    """The paths of an installed program: `program_dir` holds all of it, `bin_dir` is where the user has commands."""

    def __init__(self, program_dir: Path, bin_dir: Path) -> None:
        self.program_dir = program_dir
        self.bin_dir = bin_dir
        self.app = program_dir / "app"  # the copy of the program that the hooks run
        self.env = program_dir / "env"  # the private virtual environment
        self.python = python_in(self.env)
        self.launcher = program_dir / "bin" / (f"{NAME}.cmd" if os.name == "nt" else NAME)
        # The launcher as skills name it in their shell commands, and permission rules with them: word for word.
        self.command = shlex.quote(str(self.launcher))
        self.link = bin_dir / NAME  # to the launcher
        self.ledger_file = program_dir / LEDGER_NAME  # what was installed where
        self.sample_home = program_dir / "sample-home"  # made where there is no other home, to show the hook at work


def program_paths(environ: Mapping[str, str]) -> ProgramPaths:
    """The paths of the program that runs, if it is an installed one, else of the one that this user has or may get."""
    home = Path(required_user_dir(environ))
    above = source_dir().parent
    if source_dir().name == "app" and (above / LEDGER_NAME).is_file():
        program_dir = above
    elif os.name == "nt" and environ.get("LOCALAPPDATA"):
        program_dir = Path(environ["LOCALAPPDATA"]) / NAME
    else:
        # The XDG Base Directory Specification says to ignore relative paths.
        data = environ.get("XDG_DATA_HOME", "")
        program_dir = (Path(data) if os.path.isabs(data) else home / ".local" / "share") / NAME
    return ProgramPaths(program_dir, home / ".local" / "bin")


def how_to_add(extra: str) -> str:
    """The command that installs what an extra of pyproject.toml needs, for the program that runs: an installed one or a
    package. With '' what everything needs."""
    if source_dir().name == "app" and (source_dir().parent / LEDGER_NAME).is_file():
        return f"{NAME} install{f' --with {extra}' if extra not in _ALWAYS_INSTALLED else ''}"
    return f"pip install '{NAME}[{extra}]'" if extra else "run install.py where a package index can be reached"


def how_to_add_module(module: str) -> str:
    """The command that installs what an import of `module` has missed."""
    return how_to_add(_EXTRA_OF.get(module.partition(".")[0], ""))


def python_in(env: Path) -> Path:
    return env / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def source_dir() -> Path:
    """The directory with `hooks/`, `skills/`, `templates/`: a copy of the repository, or `packaged/` in a wheel."""
    package = package_dir()
    return package / PACKAGED if (package / PACKAGED).is_dir() else package.parent


def package_dir() -> Path:
    return Path(os.path.abspath(session_memory.__file__)).parent


def shared_data_dir(environ: Mapping[str, str]) -> str:
    """Return the directory for the environment of plugins in runtimes that keep none for a plugin's data."""
    return f"{person_home(environ).memory_dir}/{SHARED_FOLDER}"


def stay_with_version() -> None:
    """Keep the directories that this process imports from until it ends, whatever upgrades come."""
    package = session_memory.__path__[0]
    packages = [path for path in sys.path if path.endswith("/site-packages") and "/env-" in path]
    for path in [os.path.dirname(package), *(path.rpartition("/lib/")[0] for path in packages)]:
        with suppress(OSError):  # not every file system has locks
            _lock(os.open(path, os.O_RDONLY), is_shared=True)


def load_all_modules() -> None:
    """Load the modules of a version that a later one may overwrite in its place, as `pip install` does. It takes 0.6 s
    without those that import large packages; a host begins with its own."""
    package = Path(session_memory.__path__[0])
    for path in sorted(package.rglob("*.py")) if "/app-" not in str(package) else ():
        inner = ".".join(path.relative_to(package).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        if not inner.startswith(_NOT_LOADED):
            with suppress(ImportError):  # of a package that is not installed
                importlib.import_module(f"{session_memory.__name__}.{inner}".rstrip("."))


def is_in_use(path: str) -> bool:
    """Check if a process stays with the version in the directory `path`."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        _lock(descriptor, is_shared=False)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, is_shared: bool) -> None:
    """Lock a directory, if this system can: shared, or for this process alone. Raises OSError."""
    try:
        import fcntl
    except ImportError:  # Windows keeps files that are open
        return
    fcntl.flock(descriptor, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


def add_all_packages(environ: Mapping[str, str]) -> None:
    """Let this process import what any plugin of ours has installed for itself, or an install has."""
    data_dirs = [path for each in all_runtimes() for path in each.install.plugin_data_dirs(environ, NAME)]
    data_dirs += [environ.get(ENV_DATA, ""), shared_data_dir(environ), str(program_paths(environ).program_dir)]
    add_site_packages(data_dirs)
