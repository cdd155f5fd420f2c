"""Moves what rules exclude to private folders, and back."""

from collections.abc import Callable, Mapping

from ...common.system.sqlite import CorruptDatabaseError
from ...extension_points import FOLLOWING_RULES
from ...history.store.location import StoreLocation
from .run import Run


def follow_rules(
    location: StoreLocation, environ: Mapping[str, str], note: Callable[[str], None]
) -> None:
    """Have each feature move its files that rules exclude to private folders, and others back.
    Calls `note` with any obstacle. Raises CorruptDatabaseError."""
    run = Run(location, environ, note)
    run.take(FOLLOWING_RULES, fatal=(CorruptDatabaseError,))


def follow_in_upkeep(run: Run) -> None:
    """Do the same as a step of upkeep."""
    run.take(FOLLOWING_RULES)
