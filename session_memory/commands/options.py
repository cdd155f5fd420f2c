"""The arguments of a command as a table, which reads the usual calls by itself: loading `argparse` takes longer than a
search. What it does not understand at once, help and mistakes among it, is left to `argparse`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from typing import Any


class Arguments:
    """What was given, each option as an attribute."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class Option:
    """An option `--name`, or an argument by its place where the name has no dashes. One without `metavar` and `choices`
    is true or false; `many` takes one or more. `convert` makes a value of the text and raises ValueError, which says
    what is wrong."""

    def __init__(
        self, name: str, help: str, *, metavar: str = "", default: object = None, choices: Sequence[str] = (),
        convert: Callable[[str], object] = str, many: bool = False,
    ) -> None:  # fmt: skip
        self.name = name
        self.help = help
        self.metavar = metavar
        self.choices = tuple(choices)
        self.convert = convert
        self.many = many
        self.is_positional = not name.startswith("-")
        self.is_flag = not metavar and not choices
        self.default = False if self.is_flag else default

    @property
    def attribute(self) -> str:
        return self.name.lstrip("-").replace("-", "_")

    def value(self, text: str) -> object:
        """The value in `text`. Raises ValueError."""
        if self.choices and text not in self.choices:
            raise ValueError(text)
        return self.convert(text)


def parse(words: Sequence[str], options: Sequence[Option]) -> Arguments | None:
    """What `words` say; None where that is for `argparse` to find out."""
    arguments = Arguments()
    for option in options:
        setattr(arguments, option.attribute, option.default)
    by_name = {option.name: option for option in options}
    places: list[str] = []
    rest = list(words)
    try:
        while rest:
            word = rest.pop(0)
            if not word.startswith("-"):
                places.append(word)
                continue
            option = by_name[word]
            value = True if option.is_flag else option.value(_argument(rest))
            setattr(arguments, option.attribute, value)
        for option in options:
            if option.is_positional:
                texts, places = (places, []) if option.many else (places[:1], places[1:])
                values = [option.value(text) for text in texts]
                setattr(arguments, option.attribute, values if option.many else values[0])
                if not values:
                    return None
    except (KeyError, IndexError, ValueError):
        return None
    return None if places else arguments


def _argument(rest: list[str]) -> str:
    if rest[0].startswith("-"):
        raise ValueError(rest[0])
    return rest.pop(0)


def add(parser: argparse.ArgumentParser, options: Sequence[Option]) -> None:
    """Adds the options to a parser of `argparse`."""
    for option in options:
        if option.is_flag:
            parser.add_argument(option.name, action="store_true", help=option.help)
            continue
        more: dict[str, Any] = {"nargs": "+"} if option.many else {}
        if not option.is_positional:
            more["default"] = option.default
        if option.choices:
            more["choices"] = option.choices
        else:
            more["metavar"] = option.metavar
        parser.add_argument(option.name, type=_explained(option.convert), help=option.help, **more)


def _explained(convert: Callable[[str], object]) -> Callable[[str], object]:
    """`convert` with its ValueError as argparse shows one."""
    import argparse

    def converted(text: str) -> object:
        try:
            return convert(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return converted


HOME = Option("--home", "whose store: an agent home, a host, or your home directory", metavar="PATH")
JSON = Option("--json", "print the result as JSON")
