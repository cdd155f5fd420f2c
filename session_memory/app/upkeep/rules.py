"""Moves what rules exclude to private folders, and back."""

from collections.abc import Callable

from ...common.system.sqlite import CorruptDatabaseError
from ...extension_points import FOLLOWING_RULES
from ...history.store.location import StoreLocation
from .run import Run


def follow_rules(location: StoreLocation, note: Callable[[str], None]) -> None:
    """Have each feature move its files that rules exclude to private folders, and others back.

    Obstacles are passed to `note`. Raises CorruptDatabaseError."""
    run = Run(location, note)
    run.take(FOLLOWING_RULES, fatal=(CorruptDatabaseError,))


def follow_in_upkeep(run: Run) -> None:
    """Do the same as a step of upkeep."""
    run.take(FOLLOWING_RULES)
