"""The sample file and the reference in the documentation follow from the table of keys."""

from __future__ import annotations

from pathlib import Path

import yaml

from session_memory.sessions.settings import keys
from session_memory.sessions.settings.check import FileCheck
from session_memory.sessions.settings.section_table import KEYS

ROOT = Path(__file__).resolve().parents[3]
WRITE_ANEW = "run: python -m session_memory.sessions.settings.keys"


def uncommented(sample: str) -> str:
    """The sample as somebody has it who takes the # from every line with a key."""
    lines = [line.removeprefix("# ") for line in sample.splitlines()]
    return "\n".join(
        line for line in lines if line.split("#")[0].strip().partition(":")[0].isidentifier()
    )


def test_the_sample_shows_every_key_with_its_default(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(uncommented(keys.sample()))
    checked = FileCheck(str(path))
    assert checked.faults == []
    values = yaml.safe_load(path.read_text())
    for key in [key for key in KEYS if key.about]:
        found = values
        for part in key.name.split("."):
            found = found[part]
        assert found == (yaml.safe_load(key.sample) if key.sample else key.default), key.name


def test_the_sample_is_all_comments_and_no_line_is_long() -> None:
    for line in keys.sample().splitlines():
        assert not line or line.startswith("#")
        assert len(line) <= 120


def test_the_templates_and_the_documentation_are_as_the_table_says() -> None:
    assert (ROOT / "templates/_base/.session-memory/config.yaml").read_text() == keys.sample(), (
        WRITE_ANEW
    )
    page = (ROOT / "docs/reference/settings.md").read_text()
    assert keys._with_reference(page) == page, WRITE_ANEW


def test_the_example_in_the_documentation_is_right(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        (ROOT / "docs/reference/settings.md")
        .read_text()
        .partition("```yaml\n")[2]
        .partition("```")[0]
    )
    checked = FileCheck(str(path))
    assert checked.faults == []
    assert (len(checked.rules), len(checked.projects)) == (3, 1)
