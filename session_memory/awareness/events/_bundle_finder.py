"""Loads modules from a bundle.

The code of this module is the first thing in the bundle and runs from there.
"""

from __future__ import annotations

import sys

# The parts of `importlib`: importing that package itself takes a sixth of the hook's whole time.
from _frozen_importlib import ModuleSpec
from marshal import loads

try:
    from posix import stat
except ImportError:
    from nt import stat  # type: ignore[attr-defined,no-redef,unused-ignore]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO
    from types import CodeType, ModuleType

    # Name, whether it is a package, path of the source below the root, its size, and its mtime in
    # ns.
    BundledModule = tuple[str, bool, str, int, int]
    # The offset and length of some modules' code in the bundle, and these modules.
    BundledPart = tuple[int, int, tuple[BundledModule, ...]]


class BundleFinder:
    """Finds the modules of a bundle, as a member of `sys.meta_path`.

    Modules that are loaded together form a part. When the first of them is imported, all of them
    run, each after its imports. So `importlib` need not search for the others, which takes as long
    per module as running it. A module whose source has changed is loaded from its source."""

    def __init__(self, bundle: FileIO, root: str, parts: tuple[BundledPart, ...]) -> None:
        self._bundle = bundle
        self._root = root
        self._parts = {module[0]: part for part in parts for module in part[2]}
        self._waiting: dict[str, tuple[BundledModule, CodeType]] = {}

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of a bundled module, which has run by then; None for any other.

        Raises the module's errors."""
        if name in self._parts:
            modules = self._parts[name][2]
            self._read(self._parts[name])
            for module in modules:
                self._run(module[0])
        else:
            self._run(name)
        return sys.modules[name].__spec__ if name in sys.modules else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module that has run."""
        return sys.modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do."""

    def _read(self, part: BundledPart) -> None:
        """Read the modules of a part, to run later."""
        at, length, modules = part
        self._bundle.seek(at)
        for module, code in zip(modules, loads(self._bundle.read(length))):
            del self._parts[module[0]]
            if is_as_bundled(self._root, module):
                self._waiting[module[0]] = module, code

    def _run(self, name: str) -> None:
        """Run the code of a module that waits, if it does."""
        if name not in self._waiting:
            return
        (_, is_package, path, _, _), code = self._waiting.pop(name)
        file = f"{self._root}/{path}"
        module = type(sys)(name)
        module.__file__ = file
        module.__loader__ = self  # type: ignore[assignment]
        spec = module.__spec__ = ModuleSpec(name, self, origin=file, is_package=is_package)  # type: ignore[arg-type]
        spec._initializing = False  # type: ignore[attr-defined]  # each import looks for it
        above, _, last = name.rpartition(".")
        if above and above not in sys.modules:  # a package whose source has changed since
            __import__(above)
        module.__package__ = name if is_package else above
        if is_package:  # modules outside the bundle are found there
            module.__path__ = module.__spec__.submodule_search_locations = [
                file[: -len("/__init__.py")]
            ]
        sys.modules[name] = module
        try:
            exec(code, module.__dict__)
        except BaseException:
            del sys.modules[name]
            raise
        if above:
            setattr(sys.modules[above], last, module)


def use(bundle: FileIO, root: str, parts: tuple[BundledPart, ...]) -> None:
    """Load modules from `bundle` from now on, if it is whole."""
    if is_whole(bundle, parts):
        sys.meta_path.insert(0, BundleFinder(bundle, root, parts))


def is_whole(bundle: FileIO, parts: tuple[BundledPart, ...]) -> bool:
    """Check if `bundle` has the length that it was made with."""
    return bundle.seek(0, 2) == parts[-1][0] + parts[-1][1]


def is_as_bundled(root: str, module: BundledModule) -> bool:
    """Check if a module's source below `root` is still the one from which its code was made."""
    try:
        status = stat(f"{root}/{module[2]}")
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == module[3:]
