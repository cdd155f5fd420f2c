"""Runs a benchmark from the command line.

The arguments of its `main` are the options, and its docstring is the help.
"""

from __future__ import annotations

import inspect
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable
from typing import NoReturn, get_args, get_origin, get_type_hints


def run(main: Callable[..., int | None]) -> NoReturn:
    """Run a benchmark with the options of this process, and exit with what it returns."""
    given = vars(parser_of(main).parse_args())
    plain = [
        parameter
        for parameter in inspect.signature(main).parameters.values()
        if parameter.kind is parameter.VAR_POSITIONAL
    ]
    sys.exit(main(*[value for parameter in plain for value in given.pop(parameter.name)], **given))


def parser_of(main: Callable[..., object]) -> ArgumentParser:
    """Return the parser of a benchmark's options.

    An option of the type bool is a flag, and one of a list takes several values. An argument
    without a default is positional."""
    parser = ArgumentParser(
        description=sys.modules[main.__module__].__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    hints = get_type_hints(main)
    for name, parameter in inspect.signature(main).parameters.items():
        option = f"--{name.replace('_', '-')}"
        kinds = [kind for kind in get_args(hints[name]) if kind is not type(None)] or [hints[name]]
        if parameter.kind is parameter.VAR_POSITIONAL:
            parser.add_argument(name, nargs="*", type=kinds[0])
        elif parameter.default is parameter.empty:
            parser.add_argument(name, type=kinds[0])
        elif kinds[0] is bool:
            parser.add_argument(option, action="store_true")
        elif get_origin(hints[name]) is list:
            parser.add_argument(option, nargs="+", action="extend", type=kinds[0], default=[])
        else:
            note = (
                f"({parameter.default:,})"
                if isinstance(parameter.default, int)
                else f"({parameter.default})"
                if parameter.default
                else ""
            )
            parser.add_argument(option, type=kinds[0], default=parameter.default, help=note)
    return parser
