"""The NamedTuple of the pack does what that of `typing` does, but is made quickly."""

from __future__ import annotations

import copy
import pickle
import typing

import pytest

from session_memory.common.named_tuple import NamedTuple


class Quick(NamedTuple):
    """A place in a file."""

    file: str
    line: int
    column: int = 1

    @property
    def shown(self) -> str:
        return f"{self.file}:{self.line}"


class Usual(typing.NamedTuple):
    """A place in a file."""

    file: str
    line: int
    column: int = 1

    @property
    def shown(self) -> str:
        return f"{self.file}:{self.line}"


both = pytest.mark.parametrize("kind", [Quick, Usual])


@both
def test_it_is_a_tuple_with_names_and_defaults(kind: type[Usual]) -> None:
    place = kind("a.py", 7)
    assert (
        place
        == ("a.py", 7, 1)
        == kind(line=7, file="a.py")
        == kind("a.py", column=1, line=7)
        == kind._make(place)
    )
    assert (place.file, place.line, place.column, place.shown) == ("a.py", 7, 1, "a.py:7")
    assert place._replace(line=8) == ("a.py", 8, 1)
    assert place._asdict() == {"file": "a.py", "line": 7, "column": 1}
    assert (kind._fields, kind._field_defaults) == (("file", "line", "column"), {"column": 1})
    assert repr(place) == f"{kind.__name__}(file='a.py', line=7, column=1)"
    assert kind.__doc__ == "A place in a file."


@both
def test_it_is_copied_and_pickled_as_itself(kind: type[Usual]) -> None:
    place = kind("a.py", 7, 2)
    for same in (copy.deepcopy(place), pickle.loads(pickle.dumps(place))):
        assert (same, type(same)) == (place, kind)


@both
def test_a_pattern_takes_it_apart(kind: type[Usual]) -> None:
    match kind("a.py", 7):
        case kind(file, 7):
            assert file == "a.py"
        case _:
            pytest.fail("it does not match")


@both
@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((), {}),
        (("a",), {}),
        (("a", 1, 2, 3), {}),
        (("a", 1), {"file": "b"}),
        (("a", 1), {"page": 2}),
    ],
)
def test_a_wrong_field_is_an_error(
    kind: type[Usual], values: tuple[str, ...], named: dict[str, typing.Any]
) -> None:
    with pytest.raises(TypeError):
        kind(*values, **named)


@both
def test_a_field_cannot_be_replaced_that_there_is_not_nor_be_set(kind: type[Usual]) -> None:
    with pytest.raises((TypeError, ValueError)):
        kind("a.py", 7)._replace(page=2)
    with pytest.raises(TypeError):
        kind._make(["a.py"])
    with pytest.raises(AttributeError):
        kind("a.py", 7).line = 8  # type: ignore[misc]
