"""The beginning of the hooks that somebody waits for.

If an install made a bundle (session_memory/awareness/events/bundle.py), all modules come from that
one file.
"""

import gc
import sys


def run(name):  # type: (str) -> None
    """Run a function of session_memory.awareness.events.main.

    A broken installation must not stop anything: then nothing is printed, and `session-memory
    doctor` says what is wrong."""
    root = sys.path.pop(0)[: -len("/hooks")]
    # all modules are of the version that the link `app` leads to now, whenever an upgrade turns it
    try:
        from posix import readlink

        target = readlink(root)
        root = target if target.startswith("/") else root[: root.rfind("/") + 1] + target
    except (ImportError, OSError):
        pass
    sys.path.append(root)
    if sys.version_info < (3, 10):
        sys.path.insert(0, root + "/hooks")
        import old_python

        old_python.end()
    gc.disable()  # the process is over before cycles could matter
    try:
        from _frozen_importlib_external import MAGIC_NUMBER
        from marshal import loads

        bundle = open(root + "/prompt.bundle", "rb", 0)  # noqa: SIM115  open to the end: imports read it
        head = bundle.read(24576)
        if head.startswith(MAGIC_NUMBER):
            finder, groups = loads(head[len(MAGIC_NUMBER) :])
            names = {"groups": groups}
            exec(finder, names)
            names["use"](bundle, root, groups)
    except Exception:
        pass
    from session_memory.awareness.events import main

    getattr(main, name)()
