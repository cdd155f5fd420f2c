"""A command that changes no byte of a file is not an edit, whoever else has uncommitted edits."""

from __future__ import annotations

from pathlib import Path

import pytest
from collision_scene import Pair, collisions

from bench.clones import Clone
from session_memory.common.text.shell_written import has_replaced_nothing


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(Clone(tmp_path))


@pytest.mark.parametrize(
    "command", ["sed -i 's/slots = 6/slots = 7/' src/app.py", "sed -i -e s/no/seven/ src/app.py"]
)
def test_a_substitution_that_found_nothing_in_an_edited_file_is_no_edit(
    pair: Pair, command: str
) -> None:
    pair.main.edit("src/app.py", "1\n")
    pair.discord.bash(command)
    assert collisions(pair.main.prompt()) == []
    pair.discord.bash("sed -i 's/app/application/' src/app.py")
    assert len(collisions(pair.main.prompt())) == 1


@pytest.mark.parametrize(
    ("command", "is_known"),
    [
        ("sed -i 's/one/three/' a", True),
        ("cd x && perl -pi -e 's/one/three/g' a && cat a", True),
        ("sed -i -e s/one/three/ -e 's/two/four/' a", True),
        ("sed -i 's/x/two/' a", False),  # it is there
        ("sed -i s/one// a", False),
        ("sed -i '/one/d' a", False),
        ("sed -i -e '1d' -e s/one/three/ a", False),
        ("sed -n -i s/one/three/ a", False),
        ("perl -ni -e 's/one/three/' a", False),
        ("sed -i s/one/three/ a; python3 change.py", False),
        ("sed -i s/one/three/ a; echo x > a", False),
        ("sed -i s/one/$NEW/ a", False),
        ("sed -i 's/one/&&/' a", False),
        ("touch a", False),
    ],
)
def test_a_command_is_known_to_have_replaced_nothing(command: str, is_known: bool) -> None:
    assert has_replaced_nothing(command, "two\nlines\n") is is_known
