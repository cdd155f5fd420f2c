"""Where the installed program lies: `app/`, `env/`, `bin/`, the ledger, the sample home; and the command's link."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import session_memory

from .interpreter import python_in

NAME = "session-memory"
PACKAGED = "packaged"  # where a wheel has what a copy of the repository has beside the package


@dataclass(frozen=True)
class Places:
    """`program_dir` holds all that is installed but what lies in homes; `bin_dir` is where the user has commands."""

    program_dir: Path
    bin_dir: Path

    @property
    def app(self) -> Path:
        """The copy of the program that the hooks run."""
        return self.program_dir / "app"

    @property
    def env(self) -> Path:
        """The private environment."""
        return self.program_dir / "env"

    @property
    def python(self) -> Path:
        """The private environment's interpreter."""
        return python_in(self.env)

    @property
    def launcher(self) -> Path:
        """The command's script."""
        return self.program_dir / "bin" / (f"{NAME}.cmd" if os.name == "nt" else NAME)

    @property
    def link(self) -> Path:
        """The link to the launcher in `bin_dir`."""
        return self.bin_dir / NAME

    @property
    def ledger_file(self) -> Path:
        """What was installed where."""
        return self.program_dir / "installed.json"

    @property
    def sample_home(self) -> Path:
        """The agent home that shows a newcomer what there is to see."""
        return self.program_dir / "sample-home"


def places(environ: Mapping[str, str]) -> Places:
    """Those of the program that runs where it is an installed one, else those of this user."""
    home = Path(environ.get("HOME") or Path.home())
    running_from = source_dir().parent
    if source_dir().name == "app" and (running_from / "installed.json").is_file():
        program_dir = running_from
    elif os.name == "nt" and environ.get("LOCALAPPDATA"):
        program_dir = Path(environ["LOCALAPPDATA"]) / NAME
    else:
        # The XDG Base Directory Specification has relative paths ignored.
        data = environ.get("XDG_DATA_HOME", "")
        program_dir = (Path(data) if os.path.isabs(data) else home / ".local" / "share") / NAME
    return Places(program_dir, home / ".local" / "bin")


def source_dir() -> Path:
    """The directory that holds `hooks/`, `skills/` and all the rest: of a copy of the repository, or of a wheel."""
    package = package_dir()
    return package / PACKAGED if (package / PACKAGED).is_dir() else package.parent


def package_dir() -> Path:
    """The directory of this package."""
    return Path(os.path.abspath(session_memory.__file__)).parent


def tilde(path: str | Path, environ: Mapping[str, str]) -> str:
    """`path` as a person would write it: with `~` for the home directory."""
    home = environ.get("HOME", "").rstrip("/")
    text = str(path)
    return "~" + text[len(home) :] if home and (text == home or text.startswith(home + "/")) else text


def put_in_place(built: Path, at: Path) -> None:
    """Has `at` lead to the directory `built`, which lies beside it, in one step: who looks finds the old or the new.

    `at` is a link; what it led to before stays, for who is in it. On Windows, where links need a privilege, `at` is
    a directory.
    """
    if os.name == "nt":
        shutil.rmtree(at, ignore_errors=True)
        built.rename(at)
    else:
        link = at.with_name(at.name + ".new")
        link.unlink(missing_ok=True)
        link.symlink_to(built.name, target_is_directory=True)
        link.replace(at)


def remove_others(at: Path) -> None:
    """Removes the directories that `put_in_place` had `at` lead to before, and those that never came so far."""
    current = os.readlink(at) if at.is_symlink() else ""
    for path in at.parent.glob(f"{at.name}-*"):
        if path.name != current:
            shutil.rmtree(path, ignore_errors=True)
