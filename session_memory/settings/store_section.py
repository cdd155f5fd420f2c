"""What the section `memory` of config.yaml means to the store."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DEFAULT_GAP_MINUTES = 60


class StoreSettings:
    """`watch_paths`: directories of transcripts, none where the runtimes' own are meant. A silence of more than
    `gap_minutes` ends a conversation; one of fewer than `least_messages` messages is not worth remembering."""

    def __init__(
        self, watch_paths: tuple[str, ...] = (), gap_minutes: int = DEFAULT_GAP_MINUTES, poll_seconds: float = 30.0,
        least_messages: int = 5,
    ) -> None:  # fmt: skip
        self.watch_paths = watch_paths
        self.gap_minutes = gap_minutes
        self.poll_seconds = poll_seconds
        self.least_messages = least_messages

    @property
    def gap(self) -> int:
        """The gap in milliseconds."""
        return self.gap_minutes * 60_000


def settings_of(section: Mapping[str, Any], user_home: str) -> StoreSettings:
    """The settings in a section that was checked; `~` in its paths stands for `user_home`."""
    paths = section.get("watchPath", [])
    return StoreSettings(
        tuple([_expanded(path, user_home) for path in (paths if isinstance(paths, list) else [paths])]),
        section.get("conversationGapMinutes", DEFAULT_GAP_MINUTES),
        section.get("pollIntervalMs", 30_000) / 1000,
        section.get("minConversationMessages", 5),
    )


def _expanded(path: str, user_home: str) -> str:
    if path == "~" or path.startswith("~/"):
        path = user_home + path[1:]
    return os.path.normpath(path)
