"""session-memory: tells each coding agent what its other sessions did, and remembers what was said
in all of them.

Three things to know first:

- A `Runtime` (sessions/runtimes/base.py) is what runs an agent, such as Claude Code or Codex.
- An `Entry` (sessions/transcripts/entries.py) is what was said or done in a session, as one record of its
  transcript has it.
- An update is what a session learns about the others: a `Report` for each of them
  (awareness/activity/report.py), made into the text of `[Session Activity]` by awareness/activity/updates.py.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

NAME = "session-memory"  # of the command
__version__ = "0.5.0"


def _of_one_version(package: str) -> str:
    """Return the path of the package without the link `app`, which an upgrade turns to the
    directory of another version: modules that are imported after that are of the version of those
    before."""
    root, _, name = package.rpartition("/")
    try:
        from posix import readlink

        target = readlink(root)
    except (ImportError, OSError):
        return package
    return f"{'' if target.startswith('/') else root[: root.rfind('/') + 1]}{target}/{name}"


__path__ = [_of_one_version(path) for path in __path__]


_MOVED = ("archives", "memories", "store", "testing", "text", "tools")  # packages of 0.4


class _FormerNames:
    """Finds modules by their names in 0.4.

    It comes before the directories: one that an update by git left behind, with nothing but
    compiled files in it, would count as a package."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
        """Return the spec of a module that moved; None for any other."""
        package, _, module = name.partition(".")
        if package != __name__ or module.partition(".")[0] not in _MOVED:
            return None
        from .former_names import spec_of

        return spec_of(name)


sys.meta_path.insert(1, _FormerNames)
