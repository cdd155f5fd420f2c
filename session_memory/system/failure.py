"""What is said where a command fails: one line and a hint, whatever went wrong on purpose."""

from __future__ import annotations

import os
import sys

from ..errors import SessionMemoryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "session-memory"
MISSING_HINT = "run install.py again where a package index can be reached"


def answer(command: Callable[[], int]) -> int:
    """Runs a command; an error that the pack raises on purpose becomes one line, a hint, and exit code 1, and so does a
    package that the installation could not get."""
    try:
        return command()
    except SessionMemoryError as error:
        hint = f"\n  {error.hint}" if error.hint else ""
        print(f"{NAME}: {error}{hint}", file=sys.stderr)
    except ModuleNotFoundError as error:
        if not error.name or error.name.partition(".")[0] in (__package__, *sys.stdlib_module_names):
            raise
        print(f"{NAME}: {error.name} is needed for this, and not installed\n  {MISSING_HINT}", file=sys.stderr)
    except BrokenPipeError:  # who reads what we print has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"{NAME}: {where}{error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"\n{NAME}: stopped; running it again goes on from here", file=sys.stderr)
        return 130
    return 1
