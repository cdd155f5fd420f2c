"""The notes of strategies and runtimes in other packages, which an install makes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from session_memory.app.install import package_checks
from session_memory.app.install.environment import Environment


def test_runtimes_are_noted_even_if_strategies_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left on the disk")

    monkeypatch.setattr(package_checks, "note_strategies", fail)
    environ = {"HOME": str(tmp_path)}
    config = tmp_path / ".session-memory" / "config.yaml"
    config.parent.mkdir()
    config.write_text("runtimes: [/gone/shell.py]\n")
    problems = package_checks.search_packages(Environment(sys.executable, "3", "ready"), environ)
    [of_strategies, of_runtimes] = problems
    assert of_strategies.endswith("searched for strategies: no space left on the disk")
    assert of_runtimes.startswith("the runtime ")
    assert "/gone/shell.py" in of_runtimes
