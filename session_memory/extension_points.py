"""Every place where a feature plugs in, on one page: strings only, nothing is imported.

A row is a name with its "module:attribute" below `session_memory`, or its "module".
`common.extensions` loads a row when it is needed. To remove an extra, delete its folder and its
rows. A row whose module is gone is skipped."""

# The subcommands, by their heading in --help: SUMMARY (the purpose in a few words),
# add_arguments(parser), and run(arguments), which returns the exit code.
COMMANDS = {
    "Every day": {
        "page": "extras.page.command",
        "search": "app.commands.search",
        "sessions": "app.commands.sessions",
        "read": "app.commands.read",
        "show": "app.commands.show",
        "deliveries": "app.commands.deliveries",
        "conflicts": "app.commands.conflicts",
        "why": "app.commands.why",
        "handoff": "app.commands.handoff",
    },
    "Look back": {
        "conversations": "app.commands.conversations",
        "memories": "app.commands.memories",
        "remember": "app.commands.remember",
        "patterns": "app.commands.patterns",
        "errors": "app.commands.errors",
        "costs": "app.commands.costs",
        "proof": "extras.proof.command",
    },
    "Check and set": {
        "doctor": "app.commands.doctor",
        "config": "app.commands.config",
        "install": "app.install.command:INSTALL",
        "uninstall": "app.install.command:UNINSTALL",
        "completion": "app.commands.completion",
        "statusline": "app.commands.statusline",
    },
    "Keep and delete": {
        "process": "app.commands.process",
        "archive": "app.commands.archive",
        "export": "app.commands.export",
        "forget": "app.commands.forget",
        "restore": "app.commands.restore",
        "ingest": "app.commands.ingest",
        "watch": "app.commands.watch",
    },
    "For agents and models": {
        "mcp": "app.commands.mcp",
        "new": "app.install.command:NEW",
        "graph": "extras.graph.command",
    },
    "Host and team": {
        "host": "extras.host.command",
        "team": "extras.team.command",
    },
}

# The runtimes, by their transcript format: a `Runtime`, and two signs that its user may have used
# it, a directory in their home and a variable. An install compiles these rows into the bundle.
RUNTIMES = {
    "agent-sdk": ("sessions.runtimes.claude:RUNTIME", ".claude", "CLAUDE_CONFIG_DIR"),
    "pi": ("sessions.runtimes.pi:RUNTIME", ".pi", "PI_CODING_AGENT_DIR"),
    "codex": ("sessions.runtimes.codex:RUNTIME", ".codex", "CODEX_HOME"),
    "qwen": ("sessions.runtimes.qwen:RUNTIME", ".qwen", "QWEN_RUNTIME_DIR"),
    "copilot": ("sessions.runtimes.copilot:RUNTIME", ".copilot", "COPILOT_HOME"),
    "opencode": ("sessions.runtimes.opencode:RUNTIME", ".local/share/opencode", "XDG_DATA_HOME"),
    "gemini": ("sessions.runtimes.gemini:RUNTIME", ".gemini", "GEMINI_CLI_HOME"),
    "atif": ("sessions.runtimes.atif:RUNTIME", ".atif", "ATIF_DIR"),
}

# The strategies that turn conversations into memories: see memory/strategy.py. Other packages add
# theirs with entry points of the group `session_memory.strategies`.
STRATEGIES = {
    "extractive": "memory.strategies.extractive.strategy:ExtractiveStrategy",
    "summary": "memory.strategies.summary.strategy:SummaryStrategy",
    "graphiti": "extras.graph.strategy:GraphStrategy",
}

# The views of the page in the order of its navigation: each a tuple of the fields of `View` in
# extras/page/pages.py.
VIEWS = {
    "now": "extras.page.views.sessions:VIEWS",
    "timeline": "extras.page.views.timeline:VIEWS",
    "files": "extras.page.views.files:VIEWS",
    "search": "extras.page.views.search:VIEWS",
    "memories": "extras.page.views.memories:VIEWS",
    "patterns": "extras.page.views.patterns:VIEWS",
    "branches": "extras.page.views.branches:VIEWS",
    "costs": "extras.page.views.costs:VIEWS",
    "proof": "extras.page.views.proof:VIEWS",
    "session": "extras.page.views.session:VIEWS",
    "why": "extras.page.views.why:VIEWS",
}
