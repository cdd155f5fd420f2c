"""Regexes that an install has compiled, so a prompt can use them without importing `re`.

Importing `re` takes .7 of a bare start of Python, and compiling the regexes for one password
another 1.0. Only the interpreter that compiled them uses the result. Its engine, `_sre`, checks it.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable
    from typing import Any

    # the flags, the codes as bytes, and the names of the groups by their numbers
    Compiled = tuple[int, bytes, tuple[str | None, ...]]
    # the regexes by their texts, by the interpreter that compiled them
    Prebuilt = dict[str, dict[str, Compiled]]

INTERPRETER = f"{sys.version} {sys.byteorder}"
_made: dict[str, Compiled] = {}
_texts: list[str] = []  # of regexes that a module has from its beginning


class _Pattern:
    """A regex that is compiled on first use: most never are, and prompts wait for this."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the compiled regex, and keep it."""
        self.__dict__[name] = attribute = getattr(compiled(self._text), name)
        return attribute


def pattern(text: str) -> re.Pattern[str]:
    """Return a regex that is compiled when it is first used."""
    _texts.append(text)
    return _Pattern(text)  # type: ignore[return-value]


def compiled(text: str) -> re.Pattern[str]:
    """Return a compiled regex."""
    if text not in _made:
        import re

        return re.compile(text)
    return _restored(text, _made[text])


def use_prebuilt(prebuilt: Prebuilt) -> None:
    """Use these regexes from now on, if this interpreter has compiled them."""
    _made.update(prebuilt.get(INTERPRETER, {}))


def prebuilt_regexes(texts: Iterable[str]) -> Prebuilt:
    """Return the regexes with these texts, and all of `pattern`, for `use_prebuilt`."""
    import re

    made = {}
    for text in dict.fromkeys([*texts, *_texts]):
        try:
            parts = _taken_apart(text)
            if _restored(text, parts) == re.compile(text):
                made[text] = parts
        except Exception:  # the compiler of this Python is another, so its prompts import `re`
            continue
    return {INTERPRETER: made}


def _taken_apart(text: str) -> Compiled:
    """Return the parts from which `re.compile` makes a compiled regex."""
    try:
        from re import _compiler, _parser  # type: ignore[attr-defined]
    except ImportError:  # Python 3.10
        import sre_compile as _compiler
        import sre_parse as _parser
    parsed = _parser.parse(text)
    codes = b"".join([code.to_bytes(4, sys.byteorder) for code in _compiler._code(parsed, 0)])
    names: list[str | None] = [None] * len(parsed.state.groupwidths)
    for name, number in parsed.state.groupdict.items():
        names[number] = name
    return int(parsed.state.flags), codes, tuple(names)


def _restored(text: str, parts: Compiled) -> re.Pattern[str]:
    """Return a regex from its parts, as `re.compile` does."""
    import _sre  # type: ignore[import-not-found]

    flags, codes, names = parts
    numbers = {name: number for number, name in enumerate(names) if name}
    code = memoryview(codes).cast("I").tolist()
    regex: re.Pattern[str] = _sre.compile(text, flags, code, len(names) - 1, numbers, names)
    return regex
