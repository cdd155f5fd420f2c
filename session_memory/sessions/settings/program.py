"""The paths of the program: the installed copy, its environment, and the source of an install."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import session_memory
from session_memory import NAME

from ..runtimes.table import all_runtimes
from .homes import ENV_GUARD, person_home, required_user_dir
from .yaml_file import ENV_DATA, SHARED_FOLDER, add_site_packages

# in a wheel: the directory in the package with the files that are beside it in the repository
PACKAGED = "packaged"
LEDGER_NAME = "installed.json"
_NOT_LOADED = ("extras.host.", "extras.graph", PACKAGED, "extras.conformance")
# Installed only if wanted or used, because each is large or few people need it; then it stays.
EXTRAS = {
    "sdk": ("claude-agent-sdk", "croniter"),
    "graphiti": ("graphiti-core[kuzu]>=0.31.1", "httpx>=0.27"),
    "team": ("psycopg[binary]>=3.2",),
    "zstd": ("zstandard>=0.22",),
}
# the disk space of an extra, if it matters to the person who is asked
LARGE = {"sdk": "about 360 MB"}
ENVIRONMENT_RECORD = "session-memory.json"  # in an environment: see install.environment
_EXTRA_OF = {
    "claude_agent_sdk": "sdk",
    "croniter": "sdk",
    "graphiti_core": "graphiti",
    "psycopg": "team",
    "zstandard": "zstd",
}
# if it differs from the module's name
_DISTRIBUTION_OF = {"markdown_it": "markdown-it-py", "yaml": "pyyaml"}


class ProgramPaths:
    """The paths of an installed program.

    `program_dir` contains all of it; `bin_dir` is the user's directory for commands."""

    def __init__(self, program_dir: Path, bin_dir: Path) -> None:
        self.program_dir = program_dir
        self.bin_dir = bin_dir
        self.app = program_dir / "app"  # the copy of the program that the hooks run
        self.env = program_dir / "env"  # the private virtual environment
        self.python = python_in(self.env)
        self.launcher = program_dir / "bin" / (f"{NAME}.cmd" if os.name == "nt" else NAME)
        # The launcher as skills name it in their shell commands, and permission rules with them:
        # word for word.
        self.command = shlex.quote(str(self.launcher))
        self.link = bin_dir / NAME  # to the launcher
        self.ledger_file = program_dir / LEDGER_NAME  # what was installed, and where
        # created if there is no other home, to show the hook working
        self.sample_home = program_dir / "sample-home"


def _installed_dir() -> Path | None:
    """Return the directory of the running program if it is installed, else None.

    The program runs from its part `app-...`."""
    source = source_dir()
    is_app = source.name == "app" or source.name.startswith("app-")
    return source.parent if is_app and (source.parent / LEDGER_NAME).is_file() else None


def program_paths(environ: Mapping[str, str]) -> ProgramPaths:
    """Return the paths of the running program if it is installed.

    Otherwise return the paths of the program that this user has or may install."""
    home = Path(required_user_dir(environ))
    program_dir = _installed_dir()
    if program_dir is None and os.name == "nt" and environ.get("LOCALAPPDATA"):
        program_dir = Path(environ["LOCALAPPDATA"]) / NAME
    elif program_dir is None:
        # The XDG Base Directory Specification says to ignore relative paths.
        data = environ.get("XDG_DATA_HOME", "")
        program_dir = (Path(data) if os.path.isabs(data) else home / ".local" / "share") / NAME
    return ProgramPaths(program_dir, home / ".local" / "bin")


def how_to_add(extra: str) -> str:
    """Return the command that installs an extra's packages for this program."""
    return _how_to_install(EXTRAS[extra], f" --with {extra}")


def how_to_add_module(module: str) -> str:
    """Return the command that installs the package that an import of `module` missed."""
    name = module.partition(".")[0]
    extra = _EXTRA_OF.get(name, "")
    return how_to_add(extra) if extra else _how_to_install((_DISTRIBUTION_OF.get(name, name),), "")


def _how_to_install(names: Sequence[str], options: str) -> str:
    """Return the command that installs distributions where this program runs.

    `options` are for an install of the program itself. The command never makes an index look for
    this program, because anybody might have taken its name there."""
    if program_dir := _installed_dir():
        return "\n".join(filter(None, (_remedy(program_dir), f"{NAME} install{options}")))
    if source_dir().name != PACKAGED:
        return f"python3 {shlex.quote(str(source_dir() / 'install.py'))}{options}"
    words, prefix = shlex.join(names), Path(sys.prefix)
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx inject '{prefix.name}' {words}"
    if prefix.parent.name.startswith("archive-v"):  # in uv's cache, for one run of uvx
        return (
            f"begin the command with: uvx "
            f"{shlex.join([word for name in names for word in ('--with', name)])}"
        )
    python = shlex.quote(sys.executable)
    if importlib.util.find_spec("pip") and not (prefix / "uv-receipt.toml").is_file():
        return f"{python} -m pip install {words}"
    return f"uv pip install --python {python} {words}"


def _remedy(program_dir: Path) -> str:
    """Return the command to run before an install can install packages; '' if there is none."""
    import json

    try:
        remedy = json.loads((program_dir / "env" / ENVIRONMENT_RECORD).read_bytes()).get("remedy")
    except (OSError, ValueError, AttributeError):
        return ""
    return remedy if isinstance(remedy, str) else ""


def python_in(env: Path) -> Path:
    """Return the Python of a virtual environment."""
    return env / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def source_dir() -> Path:
    """Return the directory with `hooks/`, `skills/`, `templates/`.

    It is a copy of the repository, or `packaged/` in a wheel."""
    package = package_dir()
    return package / PACKAGED if (package / PACKAGED).is_dir() else package.parent


def package_dir() -> Path:
    """Return the directory of the package that runs."""
    return Path(os.path.abspath(session_memory.__file__)).parent


def shared_data_dir(environ: Mapping[str, str]) -> str:
    """Return the directory for the plugins' environment, if the runtime keeps no plugin data."""
    return f"{person_home(environ).memory_dir}/{SHARED_FOLDER}"


def stay_with_version() -> None:
    """Keep the directories from which this process imports until it ends, despite upgrades."""
    package = session_memory.__path__[0]
    packages = [path for path in sys.path if path.endswith("/site-packages") and "/env-" in path]
    for path in [os.path.dirname(package), *(path.rpartition("/lib/")[0] for path in packages)]:
        with suppress(OSError):  # not every file system has locks
            _lock(os.open(path, os.O_RDONLY), is_shared=True)


def load_all_modules() -> None:
    """Load all modules, because a later version may overwrite the files, as `pip install` does.

    This takes 0.6 s without modules that import large packages; a host first loads its own."""
    package = Path(session_memory.__path__[0])
    for path in sorted(package.rglob("*.py")) if "/app-" not in str(package) else ():
        inner = (
            ".".join(path.relative_to(package).with_suffix("").parts)
            .removesuffix("__init__")
            .rstrip(".")
        )
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
    """Lock a directory, if this system can: shared, or only for this process. Raises OSError."""
    try:
        import fcntl
    except ImportError:  # Windows keeps files that are open
        return
    fcntl.flock(descriptor, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


def leave_session() -> None:
    """Make this process, which a hook started, independent of the hook's session.

    It has all installed packages. Hooks in programs that it starts do nothing."""
    for runtime in all_runtimes():
        names = (runtime.OWN_ID_VARIABLE, runtime.AGENT_VARIABLE)
        for name in (*names, *runtime.install.hook_variables("", "")):
            os.environ.pop(name, None)
    os.environ[ENV_GUARD] = "1"
    add_all_packages(os.environ)


def add_all_packages(environ: Mapping[str, str]) -> None:
    """Let this process import the packages that any of our plugins or installs has installed."""
    data_dirs = [
        path for each in all_runtimes() for path in each.install.plugin_data_dirs(environ, NAME)
    ]
    data_dirs += [
        environ.get(ENV_DATA, ""),
        shared_data_dir(environ),
        str(program_paths(environ).program_dir),
    ]
    add_site_packages(data_dirs)
