"""The tools that the agent of a group gets."""

from __future__ import annotations

from collections.abc import Collection

from ...app.tools.definitions import Tool, tools_of


def audiences_of_group(*, is_main: bool) -> tuple[str, ...]:
    """Return the audiences of tools that the agent of a group belongs to."""
    return ("everyone", "group", *(["main"] if is_main else []))


def tools_of_group(*, is_main: bool, others: Collection[str] = ()) -> tuple[Tool, ...]:
    """Return the tools of a group's agent, which also belongs to the audiences `others`."""
    return tools_of((*audiences_of_group(is_main=is_main), *others))
