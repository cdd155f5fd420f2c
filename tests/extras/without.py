"""Imports every module, renders every help text and makes one call per command, in a copy.

It prints the errors, one per line. The first argument is the command's session, the second a
directory for files.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import pkgutil
import sys
import traceback

import session_memory
from session_memory import cli
from session_memory.extension_points import EXPORT_FORMATS

CALLS = """
agents
archive --all --dry-run
completion bash
config
conflicts
sessions --conversations
costs
deliveries
doctor
errors boom
export SESSION
export SESSION --format html
forget SESSION --dry-run
graph search cart
handoff SESSION
host status --at FOLDER
ingest
install --dry-run
mcp --help
memories
new FOLDER/home --template pi --dry-run
page --export SESSION --out FOLDER/page.html
patterns
process --dry-run
proof
read SESSION
rescue --unknown
remember Carts are in cents
restore
search cart
sessions
read --conversation SESSION
since 2026-01-01
statusline
team status
agents --team
uninstall --dry-run
watch --help
why README.md:1
"""


def import_all() -> None:
    """Import each module."""
    for module in pkgutil.walk_packages(session_memory.__path__, "session_memory."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except Exception as error:
                print(f"import {module.name}: {error!r}")


def call(words: list[str]) -> None:
    """Make a call, and print its error if it is not one for a user."""
    errors, code = io.StringIO(), 0
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            code = cli.main(words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 2
        except Exception:
            traceback.print_exc(file=errors)
    if code not in (0, 1) or "Traceback" in errors.getvalue():
        print(f"{' '.join(words)}: {code} {errors.getvalue()}")


def main(session: str, folder: str) -> None:
    """Do all of it."""
    import_all()
    cli.help_text({}, is_full=True)
    called = set()
    for line in CALLS.strip().splitlines():
        words = line.replace("SESSION", session).replace("FOLDER", folder).split()
        is_here = "html" not in words or "html" in EXPORT_FORMATS
        if words[0] in cli.COMMANDS and is_here:
            call(words)
            call([words[0], "--help"])
            called.add(words[0])
    print(*[f"no call of {name}" for name in set(cli.COMMANDS) - called], sep="\n", end="")


main(*sys.argv[1:])
