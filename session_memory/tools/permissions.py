"""What an agent needs no permission for, where its user agrees: the commands and tools that only look things up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import NAME
from .definitions import SEARCH_GRAPH, SEARCH_TEAM, TOOLS

if TYPE_CHECKING:
    from ..runtimes import Runtime
    from ..settings.program import ProgramPaths

# The subcommands that change nothing but what is made from transcripts anyway, and that the skills teach.
LOOKUPS = (
    "search", "show", "conversations", "sessions", "read", "errors", "patterns", "memories search", "memories show"
)  # fmt: skip
# What the server of the tools is called by templates and whoever adds it by hand, and what the plugin's is called.
SERVERS = ("sessions", f"plugin_{NAME}_sessions")


def lookup_rules(runtime: Runtime, paths: ProgramPaths, conversations_dir: str) -> list[str]:
    """The runtime's rules that let these commands of an installed program, these tools and
    the reading of the archives in `conversations_dir` pass without asking; none where it has no such rules."""
    rules = runtime.install
    if not rules.COMMAND_RULE:
        return []
    commands = [f"{paths.command} {name}" for name in LOOKUPS]
    tools = [tool.name for tool in (*TOOLS, SEARCH_GRAPH, SEARCH_TEAM) if tool.is_read_only]
    return [
        *(rules.COMMAND_RULE.format(command=command) for command in commands),
        rules.READ_RULE.format(directory=conversations_dir),
        *(rules.TOOL_RULE.format(server=server, tool=tool) for server in SERVERS for tool in tools),
    ]
