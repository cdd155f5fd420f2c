"""The documentation names existing tests and files, and all pages can be reached from README."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from pathlib import Path

import pytest
from source_trees import tree_of

from session_memory.app.tools.definitions import TOOLS
from session_memory.app.upkeep.runner import CPU_SECONDS
from session_memory.extras.proof.words import HOOK_MILLISECONDS
from session_memory.sessions.settings.compiled import Settings

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")


def names_of_tests(path: Path) -> set[str]:
    """The tests of a file, those of a class as `Class::test`."""
    found = set()
    for node in tree_of(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}::{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)
            }
    return found


def test_every_test_that_the_threat_model_names_is_there() -> None:
    named = NAMED_TEST.findall((ROOT / "docs" / "inside" / "security.md").read_text())
    assert len(named) > 20
    assert [
        f"{path}::{test}" for path, test in named if test not in names_of_tests(ROOT / path)
    ] == []


def test_every_row_of_the_threat_model_names_a_test() -> None:
    rows = [
        line
        for line in (ROOT / "docs" / "inside" / "security.md").read_text().splitlines()
        if line.startswith("| to ")
    ]
    assert rows
    assert [row for row in rows if not NAMED_TEST.search(row)] == []


def test_modules_that_pages_name_by_a_part_of_their_path_are_there() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    files = listed.stdout.split()
    names = [f"/{path.removesuffix('.py')}/" for path in [*files, "hooks/pi/python"]]  # by install
    inside = [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md"]
    unknown = [
        (page.name, name)
        for page in [*inside, *(ROOT / "docs" / "inside").glob("*.md")]
        for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)+)(?:\.py)?`", page.read_text())
        if not any(f"/{name}/" in path for path in names)
    ]
    assert unknown == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def links_of(page: Path) -> list[Path]:
    """Return the files that a page links to, pictures left out."""
    return [
        (page.parent / link).resolve()
        for link in re.findall(r"(?<!!)\[[^\]]*\]\(([^)#:\s]+)", page.read_text())
    ]


def test_every_page_of_the_documentation_is_reached_from_readme() -> None:
    index = ROOT / "docs" / "README.md"
    assert index in links_of(ROOT / "README.md")
    assert [page.name for page in PAGES[4:] if page != index and page not in links_of(index)] == []


def test_readme_has_at_most_15_links() -> None:
    assert len(links_of(ROOT / "README.md")) <= 15


def figures() -> list[str]:
    """The figures in the table of docs/measured/figures.md."""
    rows = (
        (ROOT / "docs" / "measured" / "figures.md")
        .read_text()
        .partition("|---|---|---|\n")[2]
        .splitlines()
    )
    return [row.split(" | ")[0].removeprefix("| ") for row in rows]


def test_every_figure_in_readme_has_a_row_that_says_where_it_comes_from() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [one for one in figures() if one not in readme] == []
    costs = readme.partition("## What it costs")[2].partition("\n## ")[0]
    for figure in sorted(figures(), key=len, reverse=True):
        costs = costs.replace(figure, "")
    assert (
        re.findall(r"\d[\d.,]* (?:to [\d.]+ )?(?:ms|MB|GB|%|times|characters|tokens)", costs) == []
    )


def test_the_figures_that_are_settings_constants_or_counted_are_those_of_the_code() -> None:
    skills = [path.read_text() for path in (ROOT / "skills").glob("*/SKILL.md")]
    described = sum(
        len(one)
        for text in skills
        for one in re.findall(r"^(?:name|description): (.*)$", text, re.MULTILINE)
    )
    assert (len(skills), 50 * round(described / 50)) == (2, 750)
    listed = [
        {"name": one.name, "description": one.description, "inputSchema": one.schema}
        for one in TOOLS
    ]
    assert f"{round(len(json.dumps(listed)), -2):,} characters" in figures()
    assert (Settings.max_characters.default, Settings({}).upkeep_seconds, CPU_SECONDS) == (
        500,
        600,
        60,
    )
    assert f"{HOOK_MILLISECONDS} ms" in figures()


def test_where_others_are_ahead_stands_first_in_the_comparison() -> None:
    text = (ROOT / "docs" / "measured" / "comparison.md").read_text()
    assert 0 < text.index("**Others are ahead**") < text.index("\n| ")


def test_a_page_that_states_times_names_what_measures_them() -> None:
    states = re.compile(r"\b\d[\d.,]* (?:ms|MB/s|x)\b")
    pages = {
        page: page.read_text()
        for page in (ROOT / "docs").rglob("*.md")
        if page.name != "figures.md"
    }
    measured = re.compile(r"python -m bench|performance\.md|session-memory proof")
    assert [
        page for page, text in pages.items() if states.search(text) and not measured.search(text)
    ] == []


def test_every_benchmark_is_told_of() -> None:
    told = "".join(page.read_text() for page in PAGES)
    programs = [
        path
        for path in (ROOT / "bench").rglob("*.py")
        if '__name__ == "__main__"' in path.read_text()
    ]
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
        for path in programs
    }
    # they make or start what others measure
    names -= {"bench.corpus", "bench.launcher", "bench.research.public.tools"}
    assert len(names) > 20
    assert sorted(name for name in names if f"python -m {name}" not in told) == []


MECHANISMS = {
    "`flock`": r"\bflock\(",
    "`watchfiles`": r"from watchfiles",
    "`/proc/self/schedstat`": r'"/proc/self/schedstat',
    "`/proc/self/task`": r'"/proc/self/task',
    "`/proc/self/fd`": r'"/proc/self/fd',
    "`/proc/PID/stat`": r'"/proc/\{pid\}/stat',
    "`st_mtime_ns`": r"\bst_mtime_ns\b",
}


def test_the_page_on_systems_lists_every_module_that_depends_on_one() -> None:
    rows = re.findall(
        r"^\| (`[^|]+`) \| ([^|]+) \|", (ROOT / "docs/inside/systems.md").read_text(), re.MULTILINE
    )
    listed = {mechanism: set(re.findall(r"`([\w/]+\.py)`", modules)) for mechanism, modules in rows}
    package = ROOT / "session_memory"
    texts = {
        path.relative_to(package).as_posix(): path.read_text() for path in package.rglob("*.py")
    }
    assert listed == {
        name: {path for path, text in texts.items() if re.search(pattern, text)}
        for name, pattern in MECHANISMS.items()
    }
    named = set(re.findall(r"/proc/self/\w+", "".join(texts.values())))
    assert {f"`{path}`" for path in named} <= {*MECHANISMS, "`/proc/self`"}
