"""`python -m bench.modules`: the modules whose functions a prompt with news calls.

Modules in `runtimes/` are left out. The hook runs in a process of its own under `sys.setprofile`.
Calls of functions count, imports do not.
"""

from __future__ import annotations

import json
import subprocess
import sys

from .command import run
from .scenes import KILOBYTE, REPOSITORY, News, Scene
from .scratch import scratch_directory
from .sources import generated
from .stopwatch import Command, Stopwatch

SIZES = [60 * KILOBYTE] * 3
LIMIT = 15
SEED = 7
PACKAGE = "session_memory."
PROGRAM = """
import sys
from importlib import import_module
sys.path.append(sys.argv[1])
files, entered = import_module("session_memory.common.system.files"), set()

def note(frame, event, argument):
    if event == "call" and frame.f_code.co_flags & 1:  # a function, not the body of a module or class
        entered.add(frame.f_globals.get("__name__"))

def end(status):
    sys.setprofile(None)
    print(*sorted(filter(None, entered)), file=sys.stderr)
    sys.exit(status)

files.os._exit = end
main = import_module("session_memory.awareness.events.main")
sys.setprofile(note)
main.user_prompt_submit()
"""


def main(check: bool = False) -> int:
    """Return the exit code: 1 if `check` and the limit is exceeded."""
    entered = modules_of_prompt()
    print(*entered, f"{len(entered)} modules (at most {LIMIT})", sep="\n")
    return 1 if check and len(entered) > LIMIT else 0


def modules_of_prompt() -> list[str]:
    """Return the names of the modules that a prompt with news enters."""
    with scratch_directory() as name, Stopwatch() as stopwatch:
        scene = Scene(name, REPOSITORY, generated(SEED), SIZES)
        news = News(scene, stopwatch)
        news.bring()
        modules = entered_by(scene.hook())
    return [module for module in modules if not module.startswith("sessions.runtimes.")]


def entered_by(command: Command) -> list[str]:
    """Return the modules of the package that the hook enters, by its event and environment.

    Raises RuntimeError if it has nothing to print."""
    arguments = [sys.executable, "-I", "-S", "-c", PROGRAM, str(REPOSITORY)]
    done = subprocess.run(
        arguments, input=command.stdin, env=command.environment, capture_output=True, check=True
    )
    if not json.loads(done.stdout or b"{}"):
        raise RuntimeError("the hook printed nothing")
    names = done.stderr.decode().split()
    return sorted(
        {module.removeprefix(PACKAGE) for module in names if module.startswith(PACKAGE)}
        - {"sessions.runtimes"}
    )


if __name__ == "__main__":
    run(main)
