"""Steps of upkeep: each is a function of a feature, registered by its name, and each may fail."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from unittest.mock import patch

import pytest
from hooks_scene import PlainUser
from records import exchange
from test_house import PACKAGE, imports

from session_memory import extension_points
from session_memory.app.upkeep.runner import do_upkeep

TWO_HOURS_AGO = time.time() - 2 * 3600
# Below history, upkeep itself works with the store. All else is the business of steps.
WORKED_WITH = ("history.store.", "app.upkeep.")


@pytest.fixture
def person(tmp_path: Path) -> PlainUser:
    person = PlainUser(tmp_path)
    for topic in ("roses", "tulips"):
        turns = [
            exchange(f"{topic}, question {turn}?", "So.", at=TWO_HOURS_AGO + turn)
            for turn in range(3)
        ]
        person.session(*[record for turn in turns for record in turn])
    return person


def upkeep(person: PlainUser) -> str:
    """Run upkeep; its problem."""
    with patch.dict(os.environ):
        record = do_upkeep(str(person.place), {"HOME": str(person.root)})
    assert record is not None
    return record.problem


def stored(person: PlainUser) -> int:
    with sqlite3.connect(person.place / "store" / "memory.db") as connection:
        return int(connection.execute("SELECT count(*) FROM entries").fetchone()[0])


def test_upkeep_imports_no_feature() -> None:
    features = ("history", "memory", "extras", "app")
    wrong = {
        (module, imported)
        for module in imports()
        if module.startswith("app.upkeep.")
        for imported in imports()[module]
        if imported.partition(".")[0] in features and not imported.startswith(WORKED_WITH)
    }
    assert wrong == set()


def test_a_step_that_fails_costs_only_that_step(person: PlainUser) -> None:
    person.place.mkdir(exist_ok=True)
    (person.place / "conversations").write_text("no directory")  # no archive can be written
    problem = upkeep(person)
    assert "conversations" in problem + "".join(person.log())
    assert stored(person) == 12
    assert list((person.place / "memories").rglob("*.md"))


@pytest.mark.parametrize("step", ["leftover files", "rules", "titles", "memories"])
def test_steps_after_one_with_a_fault_are_taken(
    person: PlainUser, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(extension_points.UPKEEP, step, "common.text.format:shorten")
    problem = upkeep(person)
    assert problem.startswith("TypeError: shorten()")
    assert stored(person) == 12
    assert len(list((person.place / "conversations").glob("*.md"))) == 2


def test_a_step_whose_module_was_deleted_is_left_out(
    person: PlainUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in extension_points.UPKEEP:
        if step != "store":
            monkeypatch.setitem(extension_points.UPKEEP, step, "extras.deleted.upkeep:push")
    assert upkeep(person) == ""
    assert stored(person) == 12
    assert not (PACKAGE / "extras" / "deleted").exists()
