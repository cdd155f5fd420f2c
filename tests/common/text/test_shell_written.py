"""What a command shows of the lines that it wrote."""

from __future__ import annotations

import pytest

from session_memory.common.text.shell_written import _written_parts


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("sed -i s/one/two/ a.txt", [("two",)]),
        ("sed -i '' -E 's#(a)/b#\\1/c &  d#g' a.txt", [("/c", "d")]),
        ("sed -i -e 's/a/b\\/c/;s/d/e/' a.txt", [("b/c",), ("e",)]),
        ("sed -i 's/a/b\\nc/' a.txt", [("b",), ("c",)]),
        ("sed -i '3,5s/a//' a.txt", [()]),
        ("sed -i '/a/d' a.txt", []),
        ("sed -i '9a\\  new line' a.txt", [("new line",)]),
        ("gsed -i --expression=s/a/b/ a.txt", [("b",)]),
        ("perl -i -pe 's/(a)/${1}b/' a.txt", [("b",)]),
        ("cd x && echo -e 'a  b\\nc' >> a.txt && git commit -qam 'd'", [("a b",), ("c",)]),
        ("touch a.txt", []),
    ],
)
def test_the_parts_of_its_lines_are_found(command: str, parts: list[tuple[str, ...]]) -> None:
    assert _written_parts(command) == parts


@pytest.mark.parametrize(
    "command",
    [
        'sed -i "s/a/$B/" a.txt',
        "sed -i 's/a/\\U&b/' a.txt",
        "sed -i y/ab/cd/ a.txt",
        "sed -i -f script a.txt",
        "sed -i 's/a/date/e' a.txt",
        "perl -pi -e 's{a}{b}' a.txt",
        "sudo sed -i s/a/b/ a.txt",
        "bash -c 'sed -i s/a/b/ a.txt'",
        "find . -name '*.txt' | xargs sed -i s/a/b/",
        "sed s/a/b/ a.txt > b.txt",
        "echo $A > a.txt",
        "printf 'a%s' b > a.txt",
        "sed -i s/a/b/ a.txt; cp b.txt a.txt",
        "make lint",
    ],
)
def test_where_a_command_may_have_written_other_lines_nothing_is_known(command: str) -> None:
    assert _written_parts(command) is None
