import gc
import sys

root = __file__[: -len("/hooks/status_line.py")]
sys.path.append(root)
if sys.version_info < (3, 10):
    sys.path.insert(0, root + "/hooks")
    import old_python

    old_python.end()
gc.disable()  # the process is over before cycles could matter
try:
    try:  # all modules from one file, where an install made it: session_memory/hooks/bundle.py
        from _frozen_importlib_external import MAGIC_NUMBER
        from marshal import loads

        bundle = open(root + "/prompt.bundle", "rb", 0)  # noqa: SIM115  open to the end: imports read it
        head = bundle.read(16384)
        if head.startswith(MAGIC_NUMBER):
            finder, modules = loads(head[len(MAGIC_NUMBER) :])
            names = {"modules": modules}
            exec(finder, names)
            names["use"](bundle, root, modules)
    except Exception:
        pass
    from session_memory.hooks.main import status_line

    status_line()
except Exception:  # a broken installation shows no line; `session-memory doctor` says what is wrong
    sys.exit(0)
