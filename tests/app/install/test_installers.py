"""Installers of packages on a Python without any: uv, a pip of any version, a downloaded pip."""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from install_machine import NOBODY_LISTENS, PYTHON, REPOSITORY, Machine, directory_of, make_index

from session_memory.app.install import _installers as installers
from session_memory.app.install import environment
from session_memory.app.install._installers import (
    NO_PIP,
    PIP_WHEEL,
    NoInstallerError,
    fetch_pip,
    package_for,
)
from session_memory.app.install._pip_settings import pip_settings, uv_variables
from session_memory.app.install.environment import NO_INDEX, Environment, ensure_environment
from session_memory.common.system.terminal import Terminal
from session_memory.sessions.settings.program import ProgramPaths

LOCK_FILE = REPOSITORY / "requirements.lock"
GROUPS = ("basic", "store")
UV = shutil.which("uv", path=f"{sys.prefix}/bin")


def python_without_pip(directory: Path) -> Path:
    """A Python of this version that has neither pip nor ensurepip, as a Debian has it; return its
    interpreter."""
    libraries = Path(sysconfig.get_path("stdlib"))
    copy = directory / "lib" / libraries.name
    copy.mkdir(parents=True)
    for entry in libraries.iterdir():
        if entry.name not in ("ensurepip", "site-packages", "dist-packages"):
            (copy / entry.name).symlink_to(entry)
    (copy / "site-packages").mkdir()
    (directory / "bin").mkdir()
    python = directory / "bin" / os.path.basename(PYTHON)
    shutil.copy2(PYTHON, python)
    lacks = "import importlib.util as i; print(i.find_spec('pip'), i.find_spec('ensurepip'))"
    done = subprocess.run([python, "-I", "-c", lacks], capture_output=True, text=True)
    assert done.stdout == "None None\n", done
    return python


@functools.cache
def pip_files() -> Path:
    """The directory of a pip on this machine."""
    code = "import pip; print(pip.__path__[0])"
    return Path(
        subprocess.run(
            [PYTHON, "-I", "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
    )


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return python_without_pip(tmp_path_factory.mktemp("python"))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheels of the groups basic and store."""
    return make_index(tmp_path_factory.mktemp("index") / "wheels", LOCK_FILE)


@pytest.fixture(scope="module")
def pip_wheel(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A pip in a wheel, as one is fetched."""
    path = tmp_path_factory.mktemp("pip") / PIP_WHEEL
    with zipfile.ZipFile(path, "w") as wheel:
        for file in sorted(pip_files().rglob("*.py")) + sorted(pip_files().rglob("*.pem")):
            wheel.write(file, str(file.relative_to(pip_files().parent)))
    return path.read_bytes()


class Scene:
    """A home directory with an environment that is made from `python`."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.monkeypatch = home, monkeypatch
        self.program_dir = home / "program"
        self.program_dir.mkdir(parents=True)
        for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
            monkeypatch.delenv(name)
        for name, value in Machine(home).environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("PIP_INDEX_URL")

    def made(
        self, python: Path | str = PYTHON, groups: tuple[str, ...] = GROUPS, **environ: str
    ) -> Environment:
        self.monkeypatch.setattr(environment, "_base_python", lambda: str(python))
        for name, value in environ.items():
            self.monkeypatch.setenv(name, value)
        paths = ProgramPaths(self.program_dir, self.home / "bin")
        return ensure_environment(paths, LOCK_FILE, Terminal({}, is_json=True), groups)

    @property
    def packages(self) -> Path:
        (packages,) = (self.program_dir / "env" / "lib").glob("python*/site-packages")
        return packages

    def installers(self) -> set[str]:
        return {path.read_text().strip() for path in self.packages.glob("*.dist-info/INSTALLER")}


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path / "home", monkeypatch)


def test_a_python_without_pip_names_what_is_missing_everywhere(
    bare_python: Path, tmp_path: Path
) -> None:
    machine = Machine(tmp_path / "home")
    machine.has_claude_code()
    environ = {"PIP_INDEX_URL": ""}
    done = machine.run(str(bare_python), str(REPOSITORY / "install.py"), **environ)
    said = " ".join(done.stdout.split())
    assert done.returncode == 1, said
    assert f"starlette, uvicorn ({NO_PIP})" in said
    assert "nothing is stored or searched" in said
    assert "session-memory page" not in done.stdout
    command = str(machine.home / ".local/bin/session-memory")
    doctor = machine.run(command, "doctor", **environ)
    assert (doctor.returncode, "All is well" in doctor.stdout) == (1, False)
    assert re.search(r"wrong +environment .*not installed: orjson", doctor.stdout)
    search = machine.run(command, "search", "cart", **environ)
    assert search.stderr.splitlines() == [
        "session-memory: this needs apsw, which is not installed",
        "  session-memory install",
    ]


@pytest.mark.parametrize("has", ["pip", "ensurepip"])
def test_an_environment_gets_its_packages_from_whatever_pip_there_is(
    has: str, tmp_path: Path, index: Path, scene: Scene
) -> None:
    python = python_without_pip(tmp_path / "python")
    library = next((tmp_path / "python/lib").iterdir())
    if has == "pip":
        # Debian's Python has its packages elsewhere than in site-packages
        places = [python, "-I", "-c", "import site; print(site.getsitepackages()[-1])"]
        place = Path(subprocess.check_output(places, text=True).strip())
        assert place.is_relative_to(tmp_path)
        shutil.copytree(pip_files(), place / "pip")
        main = place / "pip/__main__.py"  # as before version 22.3
        main.write_text(
            "import sys\nassert '--python' not in sys.argv, 'no such option: --python'\n"
            + main.read_text()
        )
    else:
        (library / "ensurepip").symlink_to(Path(sysconfig.get_path("stdlib"), "ensurepip"))
    made = scene.made(python, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index))
    assert (made.state, made.problems) == ("made", {})
    assert {path.name for path in scene.packages.iterdir()} >= {"orjson", "yaml", "apsw"}
    assert not list(scene.packages.rglob("*.pyc"))


def test_one_call_installs_all_and_single_ones_what_can_be_had(
    tmp_path: Path, index: Path, scene: Scene
) -> None:
    part = tmp_path / "part"
    part.mkdir()
    for wheel in index.iterdir():
        if not wheel.name.startswith("apsw"):
            shutil.copy(wheel, part)
    made = scene.made(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(part))
    assert made.problems == {"store": NO_INDEX}
    assert {path.name for path in scene.packages.iterdir()} >= {"orjson", "yaml"}
    made = scene.made(PIP_FIND_LINKS=str(index))
    assert (made.state, made.problems) == ("added", {})


@pytest.mark.skipif(UV is None, reason="there is no uv beside this Python")
@pytest.mark.parametrize("is_there", [False, True])
def test_a_home_of_rustup_is_used_and_never_made(
    is_there: bool, tmp_path: Path, index: Path, scene: Scene
) -> None:
    rustc = tmp_path / "bin" / "rustc"  # as rustup's does it, whatever it is asked
    rustc.parent.mkdir()
    rustc.write_text(
        '#!/bin/sh\ntouch "$HOME/asked"\nmkdir -p "${RUSTUP_HOME:-$HOME/.rustup}/toolchains"\n'
    )
    rustc.chmod(0o755)
    if is_there:
        (scene.home / ".rustup").mkdir()
    path = f"{rustc.parent}:{scene.home}/.local/bin:/usr/bin:/bin"
    made = scene.made(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index), PATH=path)
    assert made.problems == {}
    assert (scene.home / "asked").exists()
    assert (scene.home / ".rustup/toolchains").exists() == is_there
    assert (scene.home / ".rustup").exists() == is_there


def test_uv_installs_where_it_is_there_and_reads_no_settings_of_a_project(
    bare_python: Path, tmp_path: Path, index: Path, scene: Scene
) -> None:
    assert UV is not None
    project = tmp_path / "project"
    project.mkdir()
    (project / "uv.toml").write_text(
        'no-binary = true\nfind-links = []\nindex-url = "http://127.0.0.1:9/"\n'
    )
    scene.monkeypatch.chdir(project)
    path = f"{directory_of(tmp_path / 'bin', {'uv': UV})}:/usr/bin:/bin"
    made = scene.made(bare_python, PATH=path, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index))
    assert (made.state, made.problems) == ("made", {})
    assert scene.installers() == {"uv"}
    assert not (scene.home / ".cache").exists()


def test_pip_installs_where_uv_fails(tmp_path: Path, index: Path, scene: Scene) -> None:
    path = f"{directory_of(tmp_path / 'bin', {'uv': '/bin/false'})}:/usr/bin:/bin"
    made = scene.made(PATH=path, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index))
    assert made.problems == {}
    assert scene.installers() == {"pip"}


def test_no_module_of_the_directory_that_one_is_in_is_run(
    tmp_path: Path, index: Path, scene: Scene
) -> None:
    for name in ("pip", "runpy", "venv", "site"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'marker')!r}, 'w')\n")
    scene.monkeypatch.chdir(tmp_path)
    assert scene.made(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index)).problems == {}
    assert not (tmp_path / "marker").exists()


class _Index(BaseHTTPRequestHandler):
    wheel = b""

    def do_GET(self) -> None:
        is_allowed = (
            self.headers["Authorization"] == "Basic " + base64.b64encode(b"ann:a b").decode()
        )
        page = f'<a href="/files/other.whl">x</a><a href="../files/{PIP_WHEEL}#sha256=0">x</a>'.encode()
        content = {"/simple/pip/": page, f"/simple/files/{PIP_WHEEL}": self.wheel}.get(self.path)
        self.send_response(200 if content and is_allowed else 404 if is_allowed else 401)
        self.end_headers()
        self.wfile.write(content if content and is_allowed else b"")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index_url(pip_wheel: bytes) -> Iterator[str]:
    handler = type("Index", (_Index,), {"wheel": pip_wheel})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://ann:a%20b@127.0.0.1:{server.server_port}/simple"
        server.shutdown()


def test_a_python_without_pip_fetches_one_from_the_index_of_pip_s_settings(
    bare_python: Path, index: Path, index_url: str, pip_wheel: bytes, scene: Scene
) -> None:
    scene.monkeypatch.setattr(installers, "PIP_SHA256", hashlib.sha256(pip_wheel).hexdigest())
    settings = scene.home / ".config/pip/pip.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"[global]\nindex-url = {index_url}\n[install]\nfind_links =\n  {index}\n")
    scene.monkeypatch.delenv("PIP_CONFIG_FILE")
    made = scene.made(bare_python)
    assert (made.state, made.problems) == ("made", {})


def test_a_pip_with_another_checksum_is_not_run(index_url: str, tmp_path: Path) -> None:
    with pytest.raises(NoInstallerError, match="has the wrong checksum"):
        fetch_pip(tmp_path, {"index-url": index_url})
    assert list(tmp_path.iterdir()) == []


def test_an_index_that_cannot_be_reached_or_has_no_pip_says_why(
    index_url: str, tmp_path: Path
) -> None:
    with pytest.raises(NoInstallerError, match=r"could not be downloaded: .*refused"):
        fetch_pip(tmp_path, {"index-url": NOBODY_LISTENS})
    with pytest.raises(NoInstallerError, match="could not be downloaded: Unauthorized"):
        fetch_pip(tmp_path, {"index-url": re.sub("ann:", "bob:", index_url)})
    with pytest.raises(NoInstallerError, match=NO_PIP):
        fetch_pip(tmp_path, {})


def test_uv_gets_the_sources_of_pip_unless_it_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text("[global]\nindex_url = http://a/\n[list]\nformat = json\n")
    environ = {
        "PIP_CONFIG_FILE": str(tmp_path / "pip.conf"),
        "HOME": str(tmp_path),
        "PIP_EXTRA_INDEX_URL": "http://b/ http://c/",
    }
    assert pip_settings(environ)["index-url"] == "http://a/"
    sources = {"UV_DEFAULT_INDEX": "http://a/", "UV_INDEX": "http://b/ http://c/"}
    assert (uv_variables(environ) or {}).items() >= sources.items()
    assert (
        not (uv_variables({**environ, "UV_INDEX_URL": "http://d/"}) or sources).keys()
        & sources.keys()
    )
    assert uv_variables({**environ, "PIP_PROXY": "http://e/"}) is None
    assert uv_variables({"PIP_CONFIG_FILE": os.devnull}) == {}


@pytest.mark.parametrize(
    ("manager", "package"),
    [("apt-get", "apt install python3-venv"), ("dnf", "dnf install python3-pip"), ("true", "")],
)
def test_the_package_that_brings_pip_is_named_for_the_system_s_python(
    manager: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = directory_of(tmp_path / "bin", {manager: "/bin/true"})
    monkeypatch.setenv("PATH", str(directory))
    python = os.path.realpath("/usr/bin/python3")
    assert package_for(python).removeprefix("sudo ") == package
    assert package_for("/opt/python/bin/python3") == ""
