"""Loads modules from a bundle. The code of this module is the first thing in the bundle, and runs from there."""

from __future__ import annotations

import sys

# What `importlib` is made of; importing that package itself takes as long as a sixth of all that the hook does.
from _frozen_importlib import ModuleSpec
from marshal import loads

try:
    from posix import stat
except ImportError:
    from nt import stat  # type: ignore[attr-defined,no-redef,unused-ignore]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO
    from types import ModuleType

    # Name, whether it is a package, path of the source below the root, its size, its mtime in ns, where in the bundle
    # the code lies, how long that is.
    BundledModule = tuple[str, bool, str, int, int, int, int]


class BundleFinder:
    """Finds the modules of a bundle, as a member of `sys.meta_path`, and loads them."""

    def __init__(self, bundle: FileIO, root: str, modules: tuple[BundledModule, ...]) -> None:
        self._bundle = bundle
        self._root = root
        self._modules = {module[0]: module for module in modules}

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The spec of a module of the bundle, None for any other."""
        if name not in self._modules:
            return None
        file = f"{self._root}/{self._modules[name][2]}"
        is_package = self._modules[name][1]
        spec = ModuleSpec(name, self, origin=file, is_package=is_package)  # type: ignore[arg-type]
        if spec.submodule_search_locations is not None:  # modules that are not in the bundle are found there
            spec.submodule_search_locations.append(file[: -len("/__init__.py")])
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """None: an ordinary module is made."""

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module's code in it."""
        _, _, path, _, _, at, length = self._modules[module.__name__]
        module.__file__ = f"{self._root}/{path}"
        self._bundle.seek(at)
        exec(loads(self._bundle.read(length)), module.__dict__)


def use(bundle: FileIO, root: str, modules: tuple[BundledModule, ...]) -> None:
    """Has the modules loaded from `bundle` if it is usable. Raises OSError where a source is gone."""
    if is_usable(bundle, root, modules):
        sys.meta_path.insert(0, BundleFinder(bundle, root, modules))


def is_usable(bundle: FileIO, root: str, modules: tuple[BundledModule, ...]) -> bool:
    """Whether `bundle` is whole, and every module's source below `root` is still the one that it was made from. Raises
    OSError where a source is gone."""
    for _, _, path, size, mtime, _, _ in modules:
        status = stat(f"{root}/{path}")
        if status.st_size != size or status.st_mtime_ns != mtime:
            return False
    return bundle.seek(0, 2) == modules[-1][-2] + modules[-1][-1]
