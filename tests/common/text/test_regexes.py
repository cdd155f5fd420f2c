"""Regexes that an install compiles equal the regexes of `re`, and only their interpreter uses them."""

from __future__ import annotations

import marshal
import re

import pytest

from session_memory.common.text.secrets import _regexes as regexes
from session_memory.common.text.secrets import scan
from session_memory.common.text.secrets.rules import ROWS


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> regexes.Prebuilt:
    monkeypatch.setattr(regexes, "_made", {})
    prebuilt: regexes.Prebuilt = marshal.loads(marshal.dumps(scan._prebuilt()))
    return prebuilt


def test_each_is_what_re_makes_of_its_text(made: regexes.Prebuilt) -> None:
    regexes.use_prebuilt(made)
    (texts,) = made.values()
    for text in texts:
        ours, other = regexes.compiled(text), re.compile(text)
        assert ours is not other
        assert ours == other  # their flags, codes and texts
        assert (ours.groups, ours.groupindex) == (other.groups, other.groupindex)
    assert len(texts) > len(ROWS) / 2


def test_a_match_has_the_names_of_its_groups() -> None:
    text = r"(?P<key>[a-z]+)(=)(?:(?P<value>\w+)|x)"
    hit = regexes._restored(text, regexes._taken_apart(text)).search("id=a1:b2")
    assert hit
    assert hit.groupdict() == {"key": "id", "value": "a1"}
    assert (hit.lastgroup, hit[2]) == ("value", "=")


def test_another_interpreter_compiles_them_itself(made: regexes.Prebuilt) -> None:
    (texts,) = made.values()
    regexes.use_prebuilt({"3.9.0 (another build)": dict.fromkeys(texts, (0, b"broken", (None,)))})
    text = next(iter(texts))
    assert regexes.compiled(text) is re.compile(text)


def test_a_python_with_another_compiler_imports_re(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(text: str) -> regexes.Compiled:
        if text.startswith("(?a)"):
            raise AttributeError("_code")
        return 0, b"\0\0\0\0", (None,)

    monkeypatch.setattr(regexes, "_taken_apart", other)
    assert [*scan._prebuilt().values()] == [{}]
