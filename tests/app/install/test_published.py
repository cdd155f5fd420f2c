"""Published parts, checked by other people's tools: wheel, sdist, skills, the registry's entry."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest
import yaml
from install_machine import MANIFESTS, REPOSITORY, Machine, copy_repository

from session_memory import NAME, __version__

SECONDS = 240
SCRIPTS = Path(sysconfig.get_path("scripts"))
OFFLINE = (
    "No solution found",
    "error sending request",
    "Failed to fetch",
    "Could not connect",
    "dns error",
)
MEGABYTES = 60
SITE = "https://github.com"


def text(longest: int, **more: object) -> dict[str, object]:
    """The schema of a text with 1 to `longest` characters."""
    return {"type": "string", "minLength": 1, "maxLength": longest, **more}


def fields(**schemas: object) -> dict[str, object]:
    """The schema of an object that has these fields and no others."""
    return {
        "type": "object",
        "properties": schemas,
        "required": [*schemas],
        "additionalProperties": False,
    }


def items(schema: object) -> dict[str, object]:
    """The schema of a list with at least one of these."""
    return {"type": "array", "minItems": 1, "items": schema}


# Of https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json what the entry
# uses, each field of it asked for and no other let in: what passes here passes there.
REGISTRY_ENTRY = fields(
    **{
        "$schema": {
            "const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
        }
    },
    name=text(200, pattern=r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"),
    title=text(100),
    description=text(100),
    version=text(255),
    repository=fields(url=text(255, pattern=rf"^{SITE}/"), source={"const": "github"}),
    packages=items(
        fields(
            registryType={"const": "pypi"},
            identifier={"type": "string"},
            # one version: neither a range nor "latest"
            version=text(255, pattern=r"^\d+\.\d+\.\d+$"),
            runtimeHint={"const": "uvx"},
            transport=fields(type={"const": "stdio"}),
            packageArguments=items(fields(type={"const": "positional"}, value={"type": "string"})),
        )
    ),
)


def run(*command: object, cwd: Path = REPOSITORY) -> str:
    """What a command that has to succeed prints."""
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def build(source: Path, to: Path, *targets: str) -> list[Path]:
    """What hatchling builds of a copy of the repository."""
    options = [word for target in targets for word in ("-t", target)]
    run(sys.executable, "-m", "hatchling", "build", *options, "-d", to, cwd=source)
    return sorted(to.iterdir())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist."""
    root = tmp_path_factory.mktemp("built")
    wheel, sdist = build(copy_repository(root / "copy"), root / "dist", "wheel", "sdist")
    return wheel, sdist


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as file:
        return {name: file.read(name) for name in file.namelist()}


class TestArchives:
    def test_the_sdist_builds_the_same_wheel(
        self, built: tuple[Path, Path], tmp_path: Path
    ) -> None:
        wheel, sdist = built
        with tarfile.open(sdist) as file:
            # Python before 3.11.4 has no filters
            file.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            file.extractall(tmp_path)
        [again] = build(tmp_path / sdist.name.removesuffix(".tar.gz"), tmp_path / "dist", "wheel")
        assert contents(again) == contents(wheel)

    def test_twine_and_check_wheel_contents_find_them_in_order(
        self, built: tuple[Path, Path]
    ) -> None:
        run(SCRIPTS / "twine", "check", "--strict", *built)
        run(SCRIPTS / "check-wheel-contents", built[0])

    def test_the_wheel_says_that_it_is_typed_and_needs_no_large_package(
        self, built: tuple[Path, Path]
    ) -> None:
        files = contents(built[0])
        assert "session_memory/py.typed" in files
        metadata = files[f"session_memory-{__version__}.dist-info/METADATA"].decode()
        needed = re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*$", metadata, re.MULTILINE)
        assert needed == [
            "apsw",
            "jinja2",
            "markdown-it-py",
            "orjson",
            "pygments",
            "pyyaml",
            "rich",
            "shtab",
            "starlette",
            "uvicorn",
            "watchfiles",
        ]


@pytest.fixture(scope="module")
def manifests() -> ModuleType:
    """The program that writes the address and the version into the manifests."""
    spec = importlib.util.spec_from_file_location("manifests", REPOSITORY / ".ci" / "manifests.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestManifests:
    def test_all_state_the_address_and_the_version_of_this_repository(
        self, manifests: ModuleType
    ) -> None:
        texts = manifests.written(REPOSITORY)
        assert {"README.md", "package.json", "server.json", "pyproject.toml"} <= texts.keys()
        old = [path for path, text in texts.items() if (REPOSITORY / path).read_text() != text]
        assert old == [], "python3 .ci/manifests.py writes them anew"

    def test_one_line_changes_the_address_everywhere(
        self, manifests: ModuleType, tmp_path: Path
    ) -> None:
        for path in (*manifests.written(REPOSITORY), "session_memory/__init__.py"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / path, tmp_path / path)
        project = tmp_path / "pyproject.toml"
        before = manifests.repository(REPOSITORY)
        project.write_text(
            project.read_text().replace(
                f'Repository = "{before}"', f'Repository = "{SITE}/ann/session-memory"'
            )
        )
        texts = manifests.written(tmp_path)
        account = before.split("/")[-2]
        assert [
            path
            for path, text in texts.items()
            if f"/{account}/session" in text or f".{account}/session" in text
        ] == []
        assert [path for path, text in texts.items() if "ann/session-memory" not in text] == []

    def test_no_other_file_states_the_address(self, manifests: ModuleType) -> None:
        listed = run(
            "git", "ls-files", "*.md", "*.json", "*.toml", "*.yaml", "*.yml", "*.py"
        ).splitlines()
        files = [path for path in listed if not (REPOSITORY / path).is_symlink()]
        stating = {
            path for path in files if manifests.ADDRESS.search((REPOSITORY / path).read_text())
        }
        assert stating - {*manifests.written(REPOSITORY)} == set()

    def test_validate_pyproject_finds_nothing(self) -> None:
        run(SCRIPTS / "validate-pyproject", REPOSITORY / "pyproject.toml")

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="skills-ref needs Python 3.11")
    @pytest.mark.parametrize(
        "skill", sorted((REPOSITORY / "skills").iterdir()), ids=lambda path: path.name
    )
    def test_every_skill_is_one_by_the_reference_of_agent_skills(self, skill: Path) -> None:
        run(SCRIPTS / "agentskills", "validate", skill)

    def test_the_entry_of_the_mcp_registry_is_what_its_schema_of_2025_12_11_asks_for(self) -> None:
        entry = json.loads((REPOSITORY / "server.json").read_text())
        jsonschema.validate(entry, REGISTRY_ENTRY, jsonschema.Draft7Validator)
        assert entry["version"] == __version__
        assert [
            (one["registryType"], one["identifier"], one["version"]) for one in entry["packages"]
        ] == [("pypi", NAME, __version__)]
        # By this line on its page the registry knows that the package on PyPI belongs to the entry.
        assert f"<!-- mcp-name: {entry['name']} -->" in (REPOSITORY / "README.md").read_text()

    def test_the_latest_release_in_the_changelog_is_this_version_with_its_day(self) -> None:
        latest = re.search(
            r"^## (?!.*unreleased)(.*)$", (REPOSITORY / "CHANGELOG.md").read_text(), re.MULTILINE
        )
        assert latest
        assert re.fullmatch(rf"{re.escape(__version__)} \(20\d\d-\d\d-\d\d\)", latest[1])

    def test_whom_the_licence_names_the_manifests_name_too(self) -> None:
        owner = re.search(
            r"^Copyright \(c\) \d+ (.+)$", (REPOSITORY / "LICENSE").read_text(), re.MULTILINE
        )
        assert owner
        named = [
            json.loads((REPOSITORY / path).read_text())["author"]["name"] for path in MANIFESTS
        ]
        named.append(
            json.loads((REPOSITORY / ".claude-plugin/marketplace.json").read_text())["owner"][
                "name"
            ]
        )
        assert {*named} == {owner[1]}
        assert f'authors = [{{name = "{owner[1]}"}}]' in (REPOSITORY / "pyproject.toml").read_text()


class TestWorkflows:
    """What can be checked of the GitHub workflows without an account there."""

    def test_they_are_what_the_schema_of_github_s_workflows_asks_for(self) -> None:
        files = sorted((REPOSITORY / ".github/workflows").iterdir())
        assert [path.name for path in files] == ["release.yml", "test.yml"]
        run(SCRIPTS / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files)

    def test_an_auditor_of_workflows_finds_no_way_in(self) -> None:
        run(
            SCRIPTS / "zizmor",
            "--offline",
            "--no-config",
            "--min-severity",
            "medium",
            REPOSITORY / ".github/workflows",
        )

    def test_every_supported_python_is_tested_on_linux_and_macos(self) -> None:
        jobs = yaml.safe_load((REPOSITORY / ".github/workflows/test.yml").read_text())["jobs"]
        matrix = jobs["test"]["strategy"]["matrix"]
        claimed = re.findall(r"Python :: (3\.\d+)", (REPOSITORY / "pyproject.toml").read_text())
        assert {*claimed} <= {*matrix["python"]}
        assert matrix["os"] == ["ubuntu-latest", "macos-latest"]

    def test_what_they_publish_is_built_by_the_commands_that_this_file_tests(
        self, tmp_path: Path
    ) -> None:
        run("npm", "pack", "--pack-destination", tmp_path)
        with tarfile.open(*tmp_path.iterdir()) as file:
            names = {name.removeprefix("package/").partition("/")[0] for name in file.getnames()}
        assert {"hooks", "session_memory", "skills", "package.json", "README.md"} <= names
        assert not {"tests", "bench", "docs", "findings"} & names


def uv(*words: object, home: Path) -> str:
    """What uv prints, with a home of its own; skips where no package index can be reached."""
    command = [SCRIPTS / "uv", "--no-config", "--quiet", *words]
    environ = {"HOME": str(home), "PATH": f"{SCRIPTS}:{os.defpath}", "LANG": "C.UTF-8"}
    environ |= {
        name: value for name, value in os.environ.items() if name.startswith(("UV_", "SSL_"))
    }
    done = subprocess.run(
        [*map(str, command)],
        cwd=home,
        env=environ,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode and any(sign in done.stderr for sign in OFFLINE):
        pytest.skip(
            f"no package index can be reached from here: {done.stderr.strip().splitlines()[-1]}"
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment(home: Path, *what: object) -> Path:
    """The bin directory of a new environment with what uv installs by `what`."""
    uv("venv", "--python", sys.executable, home / "env", home=home)
    uv("pip", "install", "--python", home / "env", *what, home=home)
    return home / "env" / "bin"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "home")
    machine.has_claude_code()
    return machine


@pytest.mark.slow
class TestFreshHomes:
    def test_everything_but_the_sdk_takes_less_than_60_mb(
        self, built: tuple[Path, Path], machine: Machine
    ) -> None:
        environment(machine.home, built[0])
        size = sum(path.lstat().st_size for path in (machine.home / "env").rglob("*"))
        assert size < MEGABYTES * 1e6

    def test_the_lowest_versions_that_are_asked_for_do(
        self, built: tuple[Path, Path], machine: Machine
    ) -> None:
        lowest = ["--resolution", "lowest-direct", "-r", REPOSITORY / "pyproject.toml"]
        directory = environment(machine.home, *lowest)
        uv(
            "pip",
            "install",
            "--python",
            machine.home / "env",
            "--no-deps",
            built[0],
            home=machine.home,
        )
        command = str(directory / NAME)
        assert machine.run(command, "ingest").stderr == ""
        assert "A **cookie**" in machine.run(command, "search", "cookie").stdout
        assert machine.run(command, "process").returncode == 0
        (machine.home / ".session-memory/config.yaml").write_text("scope: all\n")
        assert "scope" in machine.run(command, "config").stdout
        loaded = "import session_memory.extras.page._app, session_memory.extras.page._server, session_memory.app.upkeep.watch"
        done = machine.run(str(directory / "python"), "-c", loaded)
        assert (done.returncode, done.stderr) == (0, "")

    def test_uvx_runs_the_command_and_installs(
        self, built: tuple[Path, Path], machine: Machine
    ) -> None:
        shown = uv(
            "tool",
            "run",
            "--python",
            sys.executable,
            "--from",
            built[0],
            NAME,
            "--version",
            home=machine.home,
        )
        assert shown == f"{NAME} {__version__}\n"
        machine.has_environment()
        uv(
            "tool",
            "run",
            "--python",
            sys.executable,
            "--from",
            built[0],
            NAME,
            "install",
            home=machine.home,
        )
        shutil.rmtree(machine.home / ".cache")  # the hooks need nothing of it
        [project_dir] = (machine.claude / "projects").iterdir()
        assert "ship it" in machine.prompt(project_dir, "other")
