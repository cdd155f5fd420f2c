"""Imports by the names that 0.4 documented, for one more release; each leads to the present module.

The package asks `spec_of` only about modules of 0.4's packages, so importing a present module never
loads this one.
"""

from __future__ import annotations

import importlib
import warnings
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGE = __package__
FORMER_NAMES = {
    "archives": "history.archives",
    "archives.format": "history.archives.format",
    "memories": "memory",
    "memories.strategy": "memory.strategy",
    "store": "history.store",
    "store.postgres": "extras.team.postgres",
    "store.postgres.engine": "extras.team.postgres.engine",
    "store.postgres.push": "extras.team.postgres.push",
    "store.postgres.schema": "extras.team.postgres.schema",
    "store.team_push": "extras.team.push",
    "testing": "extras.conformance",
    "testing.fixture": "extras.conformance.fixture",
    "testing.runtimes": "extras.conformance.runtimes",
    "testing.transcripts": "extras.conformance.transcripts",
    "text": "common.text",
    "text.sanitize": "common.text.sanitize",
    "text.secrets": "common.text.secrets.redaction",
    "tools": "app.tools",
}
# Names that moved out of these modules, each with its module.
MOVED = {
    "tools.Backend": "app.tools.backend",
    "tools.GroupBackend": "extras.host.group_backend",
    "tools.HomeBackend": "app.tools.home_backend",
    "tools.ListedSession": "app.tools.values",
    "tools.RefusedError": "app.tools.values",
    "tools.SearchLimits": "app.tools.values",
    "tools.SearchResult": "app.tools.values",
    "tools.TOOLS": "app.tools.definitions",
    "tools.ToolResult": "app.tools.call",
    "tools.call": "app.tools.call",
    "tools.sdk_server": "app.tools.sdk_server",
}


class _Forwarder:
    """Makes a module with the attributes of the module `target`.

    It has no directory, so no module below it is loaded twice."""

    def __init__(self, target: str) -> None:
        self._target = target

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave it to Python."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Load the target, and forward to it."""
        target = importlib.import_module(self._target)
        former = module.__name__.partition(".")[2]
        public = {
            name: value
            for name, value in vars(target).items()
            if name[0] != "_" and f"{former}.{name}" not in MOVED
        }
        module.__dict__.update(public)
        module.__getattr__ = partial(_attribute, module.__name__, target)  # type: ignore[method-assign]
        text = (
            f"{module.__name__} is {self._target} now; the former name goes with the next release"
        )
        warnings.warn(text, DeprecationWarning, stacklevel=2)


def _attribute(former: str, target: ModuleType, name: str) -> object:
    """Return the value that a name in a module of 0.4 now leads to. Raises AttributeError."""
    place = MOVED.get(f"{former}.{name}".partition(".")[2])
    return getattr(importlib.import_module(f"{PACKAGE}.{place}") if place else target, name)


def spec_of(name: str) -> ModuleSpec | None:
    """Return the spec for a module's name in 0.4; None if it had no such module."""
    target = FORMER_NAMES.get(name.partition(".")[2])
    if target is None:
        return None
    loader = _Forwarder(f"{PACKAGE}.{target}")
    return ModuleSpec(name, loader, is_package=True)  # type: ignore[arg-type]
