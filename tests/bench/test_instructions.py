"""Counted figures: those that the documentation has, and the exit code if one is missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import instructions
from bench.cases import CASES, Setup
from bench.scenes import REPOSITORY
from bench.stopwatch import Command


def test_the_documentation_has_the_published_figures() -> None:
    page = (REPOSITORY / "docs" / "measured" / "performance.md").read_text()
    rows = page.partition("| case | before | now | aim |")[2].partition("\n\n")[0].splitlines()[2:]
    figures = [float(figure) for row in rows for figure in row.split("|")[3].split(" / ")]
    assert figures == list(instructions.PUBLISHED.values())


@pytest.mark.parametrize(("ratio", "code"), [(0.87, 0), (0.896, 0), (0.9, 1)])
def test_a_figure_may_exceed_the_published_one_by_the_tolerance(
    ratio: float,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(instructions, "_patient", lambda directory: Path("/nowhere"))
    monkeypatch.setattr(instructions, "_ratio", lambda setup, runs: ratio)
    case = next(case for case in CASES if case.name == "quiet-50")
    command = Command([], {})
    setup = Setup(command, command, lambda: None, lambda stdout: None)
    monkeypatch.setattr(instructions, "CASES", [case._replace(set_up=lambda stage: setup)])
    assert instructions.main("quiet-50", check=True) == code
    assert f"{ratio:.2f} x (published: 0.87 x)" in capsys.readouterr().out
    assert instructions.main("quiet-50") == 0


def test_an_unknown_case_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert instructions.main("quick-50") == 2
    assert "no such case: quick-50" in capsys.readouterr().err
