"""Prompts that a person took back by rewinding become no memories, but can still be found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from records import assistant, user
from store_scene import MONDAY, StoreUser

WRONG = "Please drop the parsnip table and store all prices as floats from now on."
RIGHT = "Please keep the old table and store all prices as integers in cents."


def edit(name: str) -> dict[str, str]:
    return {"file_path": f"/srv/agent/{name}", "old_string": "1", "new_string": "2"}


@pytest.fixture
def person(tmp_path: Path) -> StoreUser:
    person = StoreUser(tmp_path / "user")
    answer = assistant("The list of prices is in shop.py, with a test for each.", at=MONDAY + 1)
    instead: dict[str, Any] = user(RIGHT, at=MONDAY + 4)
    person.session(
        "8f3a-prices",
        user("Make a list of prices for the shop, with tests.", at=MONDAY),
        answer,
        user(WRONG, at=MONDAY + 2),
        assistant(("Edit", edit("parsnip.py")), "Prices are floats.", at=MONDAY + 3),
        {**instead, "parentUuid": answer["uuid"]},
        assistant(("Edit", edit("cents.py")), "Prices are integers.", at=MONDAY + 5),
    )
    person.config("store: {min_conversation_messages: 1}\n")
    return person


def test_a_rewound_prompt_is_in_no_memory_and_no_model_reads_it(person: StoreUser) -> None:
    done = person.run("process")
    assert done.returncode == 0, done.stdout + done.stderr
    [episode] = person.result("memories", "--kind", "episode")["memories"]
    assert "cents.py" in str(episode)
    read = person.run("export", "--all", "--format", "filtered").stdout
    assert RIGHT in read
    for text in (str(episode), read):
        assert "parsnip" not in text


def test_search_and_read_have_a_rewound_prompt(person: StoreUser) -> None:
    assert "parsnip" in person.run("search", "parsnip").stdout
    assert WRONG in person.run("read", "1").stdout
