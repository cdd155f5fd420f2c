"""Programs that install packages into an environment: uv, else any pip on the machine.

Debian has neither pip nor ensurepip by default, and a pip before version 22.3 cannot install into
another environment. So the environment's interpreter imports pip from its directory or wheel, which
works with any version. The caller's PIP_* and UV_* variables and pip's files apply.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from ...common.errors import SessionMemoryError
from ...common.system.files import user_dir
from ._pip_settings import is_without_index, pip_settings, uv_variables

# The pip that is downloaded if the machine has none. It runs on Python 3.9 and later.
PIP_WHEEL = "pip-25.3-py3-none-any.whl"
PIP_SHA256 = "9655943313a94722b7774661c21049070f6bbb0a1516bf02f7c8d5d9201514cd"
NO_PIP = "this Python has no pip"
_RUN_SECONDS = 900
_FETCH_SECONDS = 30
_LARGEST_WHEEL = 16 << 20
# Run by the environment's interpreter: imports pip, and nothing else, from the path in its first
# argument.
_RUN_PIP = """
import runpy, sys
from importlib.machinery import PathFinder

class Finder:
    place = sys.argv.pop(1)

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return PathFinder.find_spec(name, [cls.place]) if name == "pip" else None

sys.meta_path.insert(0, Finder)
sys.argv[0] = "pip"
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
# Run by the base interpreter: prints the directory of its pip, then the pip wheels of Python or
# Debian.
_FIND_PIP = """
import glob, os, site, sys, sysconfig
from importlib.util import find_spec

sys.path.append(site.getusersitepackages())
pip, ensurepip = find_spec("pip"), find_spec("ensurepip")
if pip and pip.origin:
    print(os.path.dirname(os.path.dirname(pip.origin)))
if ensurepip and ensurepip.origin:
    bundled = os.path.join(os.path.dirname(ensurepip.origin), "_bundled")
    for place in (bundled, sysconfig.get_config_var("WHEEL_PKG_DIR"), "/usr/share/python-wheels"):
        for wheel in sorted(glob.glob(os.path.join(place, "pip-*.whl")))[-1:] if place else ():
            print(wheel)
"""
# The command that installs a pip for the system's own Python, by the system's package manager.
_PACKAGES = {
    "apt-get": "apt install python3-venv",
    "dnf": "dnf install python3-pip",
    "zypper": "zypper install python3-pip",
    "pacman": "pacman -S python-pip",
    "apk": "apk add py3-pip",
}


class NoInstallerError(SessionMemoryError):
    """No program can install packages; `hint` is the command that installs one, or ''."""


class _Installer(NamedTuple):
    """A program with a subcommand `install`, and the options to give it."""

    program: list[str]
    options: list[str]
    is_uv: bool = False


class Installers:
    """The programs that can install into the environment of `python`; the first that works is used.

    The environment was made from `base`. Downloads are cached only if `is_cached`. This is a
    context manager, which deletes a downloaded pip at its end."""

    def __init__(
        self, python: str, base: str, environ: Mapping[str, str], *, is_cached: bool = False
    ) -> None:
        self._python, self._base, self._is_cached = python, base, is_cached
        self._environ = {
            name: value for name, value in environ.items() if not name.startswith("PYTHON")
        }
        self._environ.update(PIP_USER="0", PIP_NO_INPUT="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
        self._environ.setdefault("PIP_RETRIES", "1")
        self._environ.setdefault("RUSTUP_HOME", _rustup_home(environ))
        self._directory: str | None = None
        self._problem = NO_PIP
        self._installers = self._all()
        self._installer: _Installer | None = None
        self._is_sound = False

    def __enter__(self) -> Installers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._directory:
            shutil.rmtree(self._directory, ignore_errors=True)

    def install(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run `pip install` with these arguments, without compiling. Raises NoInstallerError."""
        installer = self._installer or next(self._installers, None)
        while installer:
            self._installer = installer
            done = self._run(
                [*installer.program, "install", *installer.options, *arguments], installer
            )
            if not done.returncode or self._works(installer):
                return done
            self._is_sound = False
            installer = next(self._installers, None)
            if installer is None:
                return done
        raise NoInstallerError(self._problem, package_for(self._base))

    def _works(self, installer: _Installer) -> bool:
        """Check if this pip runs, so a failure is the packages' fault.

        uv alone does not count: if it fails, pip is tried too, which may reach more indexes."""
        if not self._is_sound and not installer.is_uv:
            self._is_sound = self._run([*installer.program, "--version"], installer).returncode == 0
        return self._is_sound

    def _all(self) -> Iterator[_Installer]:
        uv = shutil.which("uv", path=self._environ.get("PATH"))
        variables = uv_variables(self._environ)
        if uv and os.path.isabs(uv) and variables is not None:
            self._environ |= variables
            options = ["--quiet", "--python", self._python]
            options += ["--no-cache"] * (not self._is_cached) + ["--no-index"] * is_without_index(
                self._environ
            )
            yield _Installer([uv, "pip"], options, is_uv=True)
        places = self._run([self._base, "-I", "-c", _FIND_PIP]).stdout.splitlines()
        for place in places or self._fetched():
            program = [self._python, "-I", "-c", _RUN_PIP, place]
            yield _Installer(
                program, ["--quiet", "--no-compile", *["--no-cache-dir"] * (not self._is_cached)]
            )

    def _fetched(self) -> list[str]:
        """Return the path of a pip downloaded from pip's configured index; [] on failure."""
        self._directory = tempfile.mkdtemp(prefix="session-memory-pip-")
        try:
            return [str(fetch_pip(Path(self._directory), pip_settings(self._environ)))]
        except NoInstallerError as error:
            self._problem = str(error)
            return []

    def _run(
        self, command: list[str], installer: _Installer | None = None
    ) -> subprocess.CompletedProcess[str]:
        # uv reads the settings of a project in its working directory; those of the person's current
        # project must not apply
        place = os.path.dirname(self._python) if installer and installer.is_uv else None
        try:
            return subprocess.run(
                command,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_RUN_SECONDS,
                check=False,
                cwd=place,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return subprocess.CompletedProcess(command, 1, "", str(error))


def _rustup_home(environ: Mapping[str, str]) -> str:
    """Return the home of rustup, or a directory that cannot be created if there is none.

    pip asks any `rustc` on the PATH for its version, and rustup's would create an empty ~/.rustup.
    """
    home = os.path.join(user_dir(environ), ".rustup")
    return home if os.path.isdir(home) else os.path.join(os.devnull, "rustup")


def package_for(python: str) -> str:
    """Return the command with which a system's Python gets what it needs to install packages.

    Return '' for any other Python."""
    manager = next(filter(shutil.which, _PACKAGES), None)
    if manager is None or not python.startswith("/usr/bin/"):
        return ""
    command = _PACKAGES[manager]
    name = os.path.basename(python)
    if manager == "apt-get" and name != os.path.basename(os.path.realpath("/usr/bin/python3")):
        command = f"apt install {name}-venv"
    return command if hasattr(os, "geteuid") and os.geteuid() == 0 else f"sudo {command}"


def fetch_pip(directory: Path, settings: Mapping[str, str]) -> Path:
    """Download PIP_WHEEL into a directory as pip's settings say; return its path.

    Raises NoInstallerError, also if the checksum is wrong."""
    index = settings.get("index-url", "").strip()
    content = None
    for place in settings.get("find-links", "").split():
        with suppress(OSError):
            content = Path(place.removeprefix("file://"), PIP_WHEEL).read_bytes()
    if content is None and not index:
        raise NoInstallerError(NO_PIP)
    if content is None:
        try:
            content = _from_index(index, settings.get("cert", ""))
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise NoInstallerError(f"{NO_PIP}, and it could not be downloaded: {reason}") from None
    if hashlib.sha256(content).hexdigest() != PIP_SHA256:
        raise NoInstallerError(
            f"{NO_PIP}, and the {PIP_WHEEL} that was downloaded has the wrong checksum"
        )
    path = directory / PIP_WHEEL
    path.write_bytes(content)
    return path


def _from_index(index: str, certificates: str) -> bytes:
    """Return the content of PIP_WHEEL from an index. Raises OSError, ValueError."""
    page_url = f"{index.rstrip('/')}/pip/"
    page = _content(page_url, page_url, certificates).decode("utf-8", "replace")
    links = [link.replace("&amp;", "&") for link in re.findall(r'href="([^"]+)"', page)]
    link = next(
        (link for link in links if os.path.basename(unquote(urlsplit(link).path)) == PIP_WHEEL), ""
    )
    if not link:
        raise ValueError(f"the index does not have {PIP_WHEEL}")
    return _content(urljoin(page_url, link), page_url, certificates)


def _content(url: str, page_url: str, certificates: str) -> bytes:
    """Return the content of a URL.

    The index's name and password are sent only if the URL is on the same server."""
    import base64
    import ssl
    from urllib.request import Request, urlopen

    parts, page = urlsplit(url), urlsplit(page_url)
    server = parts.netloc.rpartition("@")[2]
    request = Request(
        urlunsplit(parts._replace(netloc=server, fragment="")),
        headers={"User-Agent": "session-memory"},
    )
    user = page.netloc.rpartition("@")[0]
    if user and server == page.netloc.rpartition("@")[2]:
        request.add_header(
            "Authorization", "Basic " + base64.b64encode(unquote(user).encode()).decode()
        )
    context = (
        ssl.create_default_context(cafile=certificates or None) if parts.scheme == "https" else None
    )
    with urlopen(request, timeout=_FETCH_SECONDS, context=context) as answer:
        return bytes(answer.read(_LARGEST_WHEEL))
