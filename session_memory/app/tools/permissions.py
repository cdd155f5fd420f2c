"""Permission rules that let an agent run the read-only commands and tools without asking.

They are installed only if the user agrees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import NAME
from ...extension_points import TOOL_AUDIENCES
from .definitions import ALL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...sessions.runtimes.base import Runtime

# The subcommands that the skills teach. They change only data derived from transcripts.
LOOKUPS = (
    "search",
    "sessions",
    "read",
    "errors",
    "patterns",
    "why",
    "memories search",
    "memories show",
    # until 0.7: agents find these former names in their past
    "show",
    "conversations",
)
# as the skills of a home that was made from a template call it
HOME_COMMAND = "scripts/session-memory"
# The name of the tool server in templates and manual setups, then its name in the plugin.
SERVERS = ("sessions", f"plugin_{NAME}_sessions")


def lookup_rules(runtime: Runtime, programs: Iterable[str], conversations_dir: str) -> list[str]:
    """Return the runtime's rules that allow lookups, or [] if it has no such rules.

    They allow these commands of `programs`, each as the skills call it, these tools, and reading
    the archives in `conversations_dir`."""
    rules = runtime.install
    if not rules.COMMAND_RULE:
        return []
    commands = [f"{program} {name}" for program in programs for name in LOOKUPS]
    tools = [
        tool.name
        for tool in ALL
        if tool.audience in ("everyone", "home", *TOOL_AUDIENCES)
        if tool.is_read_only
    ]
    return [
        *(rules.COMMAND_RULE.format(command=command) for command in commands),
        rules.READ_RULE.format(directory=conversations_dir),
        *(rules.TOOL_RULE.format(server=server, tool=tool) for server in SERVERS for tool in tools),
    ]
