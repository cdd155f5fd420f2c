"""Names and paths of modules in strings lead somewhere: no import notices if one does not."""

from __future__ import annotations

import importlib
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from session_memory import extension_points
from session_memory.awareness.events import bundle
from session_memory.common.extensions import load
from session_memory.sessions.settings.program import _NOT_LOADED

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "session_memory"
TOPS = "app|awareness|common|extras|history|memory|sessions"
DOTTED = re.compile(rf"\bsession_memory((?:\.(?:{TOPS}))(?:\.\w+)*)")
IMPORT = re.compile(r"from (session_memory[\w.]*) import ([\w, ]+)")
PATH = re.compile(rf"\bsession_memory/(?:{TOPS})(?:/[\w.-]+)*/?")
BELOW = re.compile(
    rf"(?<![\w./-])(?:{TOPS.replace('app', 'app/(?:commands|install|tools|upkeep)')})(?:/[\w-]+)+\.(?:py|sql|tsv|yaml|html|js|css)\b"
)
# Files whose paths are examples, or of former versions.
EXAMPLES = (
    "CHANGELOG.md",
    "tests/fixtures/",
    "session_memory/former_names.py",
    "tests/test_former_names.py",
    "tests/common/text/test_secrets.py",
)


@cache
def texts() -> list[tuple[str, str]]:
    """Return the tracked text files with what they contain."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    kinds = (".py", ".md", ".ts", ".js", ".toml", ".json", ".yml", ".tsv", ".sh", ".sql")
    names = [name for name in listed.stdout.splitlines() if name.endswith(kinds) or "/" not in name]
    return [
        (name, (ROOT / name).read_text(errors="replace"))
        for name in names
        if not name.startswith(EXAMPLES) and "/fixtures/" not in name and (ROOT / name).is_file()
    ]


def is_there(dotted: str) -> bool:
    """Check if a dotted name below the package is a module, or what a module has."""
    module, names = "session_memory", dotted.strip(".").split(".")
    while names and (
        (PACKAGE.parent / f"{module}.{names[0]}".replace(".", "/")).is_dir()
        or (PACKAGE.parent / (f"{module}.{names[0]}".replace(".", "/") + ".py")).is_file()
    ):
        module = f"{module}.{names.pop(0)}"
    value = importlib.import_module(module)
    return not names or hasattr(value, names[0])


def test_every_dotted_name_in_a_text_leads_to_a_module_or_to_what_it_has() -> None:
    names = {(name, found[1]) for name, text in texts() for found in DOTTED.finditer(text)}
    assert len(names) > 100
    assert [pair for pair in sorted(names) if not is_there(pair[1])] == []


@pytest.mark.parametrize(
    ("pattern", "root"), [(PATH, ROOT), (BELOW, PACKAGE)], ids=["whole", "below"]
)
def test_every_path_in_a_text_leads_to_a_file(pattern: re.Pattern[str], root: Path) -> None:
    paths = {
        (name, found[0].rstrip(".")) for name, text in texts() for found in pattern.finditer(text)
    }
    assert paths
    assert [
        pair
        for pair in sorted(paths)
        if not (root / pair[1]).exists() and not (ROOT / "tests" / pair[1]).exists()
    ] == []


def test_every_module_that_the_bundle_groups_is_there() -> None:
    names = [name for part in bundle._PARTS for name in part]
    assert [name for name in names if not is_there(name)] == []


def test_every_row_of_the_extension_points_leads_to_what_it_names() -> None:
    kinds = [rows for kind, rows in vars(extension_points).items() if kind.isupper()]
    places = [place for rows in kinds for place in places_in(rows)]
    assert len(places) > 50
    for place in places:
        load(place)


def test_every_kind_of_extension_point_is_explained() -> None:
    """Each kind has a comment directly above it, or is named in another comment."""
    lines = Path(extension_points.__file__).read_text().splitlines()
    kinds = [name for name in vars(extension_points) if name.isupper()]
    comments = "\n".join(line for line in lines if line.startswith("#"))
    above = {line.partition(" = ")[0]: lines[at - 1] for at, line in enumerate(lines)}
    assert len(kinds) > 10
    assert [
        kind for kind in kinds if not above[kind].startswith("#") and kind not in comments
    ] == []


def places_in(rows: object) -> Iterator[str]:
    """Yield the places in a table, at any depth."""
    if isinstance(rows, dict):
        for row in rows.values():
            yield from places_in(row)
    else:
        yield rows if isinstance(rows, str) else rows[0]


def test_modules_that_a_host_loads_itself_are_there() -> None:
    names = [name.rstrip(".") for name in _NOT_LOADED if name != "packaged"]
    assert [name for name in names if not is_there(name)] == []


def test_what_the_extension_of_pi_compares_is_there() -> None:
    text = (ROOT / "hooks" / "pi" / "index.ts").read_text()
    [stamped] = re.findall(r"const STAMPED = \[(.*?)\]", text)
    names = re.findall(r'"(.*?)"', stamped)
    assert len(names) == 4
    assert [name for name in names if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize(
    "script", ["scripts/mcp_server.py", "scripts/session_reader.py", "install.py"]
)
def test_the_module_that_a_script_runs_is_there(script: str) -> None:
    [module] = re.findall(r'main_of\("(.*?)"', (ROOT / script).read_text())
    assert hasattr(importlib.import_module(f"session_memory.{module}"), "main")


def test_imports_in_programs_that_stand_in_strings_find_their_names() -> None:
    found = [
        (name, f"{module}.{word.split()[0]}".removeprefix("session_memory"))
        for name, text in texts()
        for module, words in IMPORT.findall(text)
        for word in words.split(",")
        if word.strip()
    ]
    assert len(found) > 1000
    examples = {
        ("tests/sessions/runtimes/test_pi_entry.py", ".gone"),
        ("tests/test_doors.py", ".sessions.runtimes._mirrored.MirroredSessions"),
    }
    assert {one for one in found if one not in examples and not has_name(one[1])} == set()


def has_name(dotted: str) -> bool:
    module, _, name = f"session_memory{dotted}".rpartition(".")
    return hasattr(importlib.import_module(module), name) or is_there(dotted)
