"""A line of which a later commit changed only the layout has both: who wrote it, and who reformatted
it."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_scene import git
from records import assistant
from repository_scene import LINE, REQUEST, Work

QUOTED = "names = ['first', 'second', label]"


class Formatted(Work):
    """A line of the session `tax`, and a later commit by the session `format`, whose command
    reformatted the file."""

    def __init__(
        self, path: Path, before: str, after: str, command: str = "npx prettier -w ."
    ) -> None:
        super().__init__(path)
        self.session("tax", self.said(REQUEST, "tax"), self.edit("tax", f"price = 1\n{before}"))
        self.write(f"price = 1\n{before}\n")
        self.commit()
        self.write(f"price = 1\n{after}\n")
        self.formatted = self.commit("Format the code")
        now = 5 * 60
        call = assistant(
            ("Bash", {"command": f"{command} && git commit -am 'Format the code'"}),
            sessionId="format",
            cwd=str(self.root),
            at=self.began + 60 * now,
        )
        self.session("format", self.said("format everything", "format", minute=now - 1), call)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (LINE, f"    {LINE}"),
        (QUOTED, QUOTED.replace("'", '"')),
        (QUOTED, f"{QUOTED.replace(', ', ',')};"),
        ('"lodash": "^4.17.20",', '"lodash": "^4.17.21",'),
    ],
)
def test_both_are_named(tmp_path: Path, before: str, after: str) -> None:
    work = Formatted(tmp_path, before, after)
    said = work.why("cart.py:2")
    assert REQUEST in said
    assert "written before " in said
    assert "reformatted by claude-code session format" in said
    [reason] = work.reasons("cart.py:2")
    assert reason["asked"]["session"] == "tax"
    assert reason["reformatted"]["session"] == "format"
    assert reason["reformatted"]["commit"] == work.formatted


def test_a_line_that_was_changed_in_more_than_its_layout_has_one_writer(tmp_path: Path) -> None:
    change = "sed -i s/tax_rate/rate/ cart.py"
    work = Formatted(tmp_path, LINE, LINE.replace("tax_rate", "rate"), change)
    [reason] = work.reasons("cart.py:2")
    assert reason["asked"]["session"] == "format"
    assert reason["reformatted"] is None


def test_a_list_of_formatting_commits_is_looked_through_and_named(tmp_path: Path) -> None:
    work = Formatted(tmp_path, LINE, f"if True: {LINE}")
    work.write(f"{work.formatted}\n", ".git-blame-ignore-revs")
    git(work.root, "add", "-A")
    git(work.root, "commit", "-qm", "Ignore it")
    [reason] = work.reasons("cart.py:2", code=1)
    assert reason["reformatted"]["commit"] == work.formatted


def test_a_very_long_line_is_not_compared(tmp_path: Path) -> None:
    long = f"x = '{'1;' * 200_000}'"
    work = Formatted(tmp_path, long, long.replace("'", '"'))
    [reason] = work.reasons("cart.py:2")
    assert reason["reformatted"] is None
