"""The documentation names what there is: tests, files, and pages that are reached from README."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")


def names_of_tests(path: Path) -> set[str]:
    """The tests of a file, those of a class as `Class::test`."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
    return found


def test_every_test_that_the_threat_model_names_is_there() -> None:
    named = NAMED_TEST.findall((ROOT / "docs" / "inside" / "security.md").read_text())
    assert len(named) > 20
    assert [f"{path}::{test}" for path, test in named if test not in names_of_tests(ROOT / path)] == []


def test_every_row_of_the_threat_model_names_a_test() -> None:
    rows = [
        line for line in (ROOT / "docs" / "inside" / "security.md").read_text().splitlines() if line.startswith("| to ")
    ]
    assert rows
    assert [row for row in rows if not NAMED_TEST.search(row)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_of_the_documentation_is_reached_from_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [page.name for page in PAGES[4:] if f"({page.relative_to(ROOT).as_posix()})" not in readme] == []
