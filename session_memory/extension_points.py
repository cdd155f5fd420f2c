"""Every place where a feature plugs in, on one page. It has only strings and imports nothing.

A row is a name with its "module:attribute" below `session_memory`, or its "module".
`common.extensions` loads a row when it is needed. To remove an extra, delete its folder and its
rows. A row without its module is skipped.
"""

# The subcommands, by their heading in `help all`: SUMMARY (the purpose in a few words),
# add_arguments(parser), and run(arguments), which returns the exit code. --help shows the first
# heading, and other commands whose optional is_set_up(environ) is true.
COMMANDS = {
    "Every day": {
        "page": "extras.page.command",
        "agents": "app.commands.agents",
        "since": "app.commands.since",
        "search": "app.commands.search",
        "sessions": "app.commands.sessions",
        "read": "app.commands.read",
        "why": "app.commands.why",
        "conflicts": "app.commands.conflicts",
        "handoff": "app.commands.handoff",
        "memories": "app.commands.memories",
        "remember": "app.commands.remember",
        "costs": "app.commands.costs",
        "doctor": "app.commands.doctor",
        "config": "app.commands.config",
    },
    "Look back": {
        "deliveries": "app.commands.deliveries",
        "rescue": "app.commands.rescue",
        "patterns": "app.commands.patterns",
        "errors": "app.commands.errors",
        "proof": "extras.proof.command",
    },
    "Set up": {
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

# The forms of `export`, by the value of --format: functions of the conversations and an
# `ExportHead`, see history/export.py.
EXPORT_FORMATS = {
    "markdown": "history.export:as_markdown",
    "json": "history.export:as_json",
    "filtered": "app.commands.export:as_filtered_here",
    "html": "extras.page.export:as_html",
}

# The sections of `doctor` before the hooks: functions of the arguments, which return the section's
# `CheckResult`, see app/commands/output.py.
DOCTOR_SECTIONS = {
    "status": "app.commands.status:check_status",
    "store": "app.commands.store_check:check_store",
}

# What `doctor` checks beside the homes: functions of the `ProgramPaths` and the environment, which
# return a list of `Finding`, see app/install/program_checks.py.
CHECKS = {
    "packages": "app.install.package_checks:check_packages",  # first: it finds new runtimes
    "program": "app.install.program_checks:check_program",
}

# What an uninstall of the whole program leaves behind, besides what runtimes keep: functions of the
# environment, which return pairs of texts (what stays, how to remove it).
LEFTOVERS = {"hosts": "extras.host.leftovers:left_behind"}

# The tools of agents in the order of their list: functions of the `Backend` in app/tools/backend.py
# and of the arguments, which return the text for the model. The tools.json beside their module has
# the other fields of `Tool` in app/tools/definitions.py. An optional function `adapted` in that
# module fits a tool to its agent.
TOOLS = {
    "list_sessions": "app.tools.session_tools:list_sessions",
    "clear_session": "app.tools.session_tools:clear_session",
    "resume_session": "app.tools.session_tools:resume_session",
    "search_sessions": "app.tools.session_tools:search_sessions",
    "seen_error": "app.tools.session_tools:seen_error",
    "why": "app.tools.session_tools:why",
    "remember": "app.tools.session_tools:remember",
    "forget": "app.tools.session_tools:forget",
    "read_session": "app.tools.session_tools:read_session",
    "search_graph": "extras.graph.tools:search_graph",
    "search_team": "extras.team.tools:search_team",
    "schedule_task": "extras.host.tools:schedule_task",
    "list_tasks": "extras.host.tools:list_tasks",
    "update_task": "extras.host.tools:update_task",
    "cancel_task": "extras.host.tools:cancel_task",
    "list_groups": "extras.host.tools:list_groups",
    "register_group": "extras.host.tools:register_group",
    "update_group": "extras.host.tools:update_group",
}

# The audiences of tools besides everyone: functions of the `Backend`, which return whether its
# agent belongs to this audience. tools.json names a tool's audience.
TOOL_AUDIENCES = {
    "graph": "extras.graph.tools:is_offered",
    "team": "extras.team.tools:is_offered",
}

# Sources for `read_session` beyond the agent's own sessions, by the audience that may read them:
# read(backend, name, count) and hint_for(name).
TOOL_SOURCES = {"team": "extras.team.tools"}

# Other servers of tools that `mcp` offers besides a home's: add_arguments(parser, places), and
# served(arguments), which returns None if the arguments do not name this server.
TOOL_SERVERS = {"group of a host": "extras.host.tool_server"}

# The runtimes, by their transcript format: a `Runtime`, and two signs that a user may have used it
# (a directory in their home, and a variable). An install compiles these rows into the bundle. Other
# packages add runtimes with entry points of the group `session_memory.runtimes`, or the person names
# them in config.yaml; `install` and `doctor` look for them.
RUNTIMES = {
    "agent-sdk": ("sessions.runtimes.claude:RUNTIME", ".claude", "CLAUDE_CONFIG_DIR"),
    "pi": ("sessions.runtimes.pi:RUNTIME", ".pi", "PI_CODING_AGENT_DIR"),
    "codex": ("sessions.runtimes.codex:RUNTIME", ".codex", "CODEX_HOME"),
    "qwen": ("sessions.runtimes.qwen:RUNTIME", ".qwen", "QWEN_RUNTIME_DIR"),
    "copilot": ("sessions.runtimes.copilot:RUNTIME", ".copilot", "COPILOT_HOME"),
    "opencode": ("sessions.runtimes.opencode:RUNTIME", ".local/share/opencode", "XDG_DATA_HOME"),
    "kilo": ("sessions.runtimes.kilo:RUNTIME", ".local/share/kilo", "XDG_DATA_HOME"),
    "gemini": ("sessions.runtimes.gemini:RUNTIME", ".gemini", "GEMINI_CLI_HOME"),
    "droid": ("sessions.runtimes.droid:RUNTIME", ".factory", "FACTORY_HOME_OVERRIDE"),
    "cline": ("sessions.runtimes.cline:RUNTIME", ".cline/data", "CLINE_DATA_DIR"),
    "openclaw": ("sessions.runtimes.openclaw:RUNTIME", ".openclaw", "OPENCLAW_STATE_DIR"),
    "omp": ("sessions.runtimes.omp:RUNTIME", ".omp", "OMP_PROFILE"),
    "kimi": ("sessions.runtimes.kimi:RUNTIME", ".kimi-code", "KIMI_CODE_HOME"),
    "hermes": ("sessions.runtimes.hermes:RUNTIME", ".hermes", "HERMES_HOME"),
    "atif": ("sessions.runtimes.atif:RUNTIME", ".atif", "ATIF_DIR"),
}

# The sections of config.yaml in the order of its documentation: subclasses of `Section` in
# sessions/settings/compiled.py. Without its row, a section is an unknown key.
SETTINGS = {
    "": "sessions.settings.compiled:Settings",
    "store": "sessions.settings.sections:StoreSettings",
    "memories": "sessions.settings.sections:MemorySettings",
    "memories.chunking": "sessions.settings.sections:Chunking",
    "memories.filtering": "sessions.settings.sections:Filtering",
    "memories.summary": "sessions.settings.sections:SummarySettings",
    "memories.graphiti": "extras.graph.settings:GraphitiSettings",
    "team": "extras.team.settings:TeamSettings",
    "host": "extras.host.settings:HostSettings",
}

# The strategies that turn conversations into memories: see memory/strategy.py. Other packages add
# strategies with entry points of the group `session_memory.strategies`, which `install` and
# `doctor` look for.
STRATEGIES = {
    "extractive": "memory.strategies.extractive.strategy:ExtractiveStrategy",
    "summary": "memory.strategies.summary.strategy:SummaryStrategy",
    "graphiti": "extras.graph.strategy:GraphStrategy",
}

# The engine for a store that several people share, see `SharedEngine` in memory/shared_store.py.
ENGINES = {"shared": "extras.team.engine"}

# Other sources of sessions, as on other machines: paths_in(side) and conflicts_with(side, commit,
# merges), see history/conflicts.py.
OTHER_SOURCES = {"team": "extras.team.conflicts"}

# Other places where `handoff` puts a page besides the terminal: functions of the open store, the
# last conversation and the `Handoff`, which return the exit code.
HANDOFFS = {"team": "extras.team.handing_over:hand_to_team"}

# Where `handoff` finds pages from other people or agents: functions of the home, which return the
# pages with `session` and `page`, the latest first.
RECEIVED_HANDOFFS = {"team": "extras.team.handoffs:received"}

# The views of the page in the order of its navigation, each a tuple of the fields of `View` in
# extras/page/_view.py. A folder `templates` beside their module may have their templates.
VIEWS = {
    "now": "extras.page.views.sessions:VIEWS",
    "sessions": "extras.page.views.organise:VIEWS",
    "search": "extras.page.views.search:VIEWS",
    "files": "extras.page.views.files:VIEWS",
    "branches": "extras.page.views.branches:VIEWS",
    "costs": "extras.page.views.costs:VIEWS",
    "timeline": "extras.page.views.timeline:VIEWS",
    "memories": "extras.page.views.memories:VIEWS",
    "patterns": "extras.page.views.patterns:VIEWS",
    "proof": "extras.proof.view:VIEWS",
    "session": "extras.page.views.session:VIEWS",
    "why": "extras.page.views.why:VIEWS",
}

# The kinds of notes that upkeep puts into the inbox for prompts: subclasses of `Note` in
# awareness/activity/inbox.py, which word them. An install compiles these rows into the bundle.
NOTES = {
    "conflicts": "awareness.activity.conflicts:KeptConflict",
    "handoffs": "extras.team.handoffs:OfferedHandoff",
}

# Work of features at an event, and the text that sessions get from it. A row has a function of the
# `Context` in awareness/events/context.py and of values of the event. It also has a file below a
# directory of `Home`, without which a hook loads nothing ('' for none), and the setting that is 0
# if the person does not want this ('' for none). An install compiles these rows into the bundle.
EVENTS = {
    # Further arguments: the session's state, and the number of characters left. They return the
    # text, and keys to store in the state.
    "prompt": {
        "memories": (
            "memory.prompt_memories:at_prompt",
            "memories_dir/.prompt-index",
            "memories.prompt_characters",
        )
    },
    # No further arguments. They return a function that adds to the `CallDelivery`.
    "call": {
        "memories": (
            "memory.call_memories:at_call",
            "memories_dir/.prompt-index",
            "memories.prompt_characters",
        )
    },
    # No further arguments. They return a text or None.
    "compacted": {"archives": ("history.archives.past:after_compaction", "", "")},
    "new session": {"archives": ("history.archives.past:recent", "", "recent_conversations")},
    # No further arguments. The conversation is about to be compacted, or has ended; no text is
    # added.
    "end": {"archives": ("history.archives.at_end:archive", "", "")},
    # Further arguments: the `CallDelivery` to add to, the files that the task names, the task, and
    # the maximum number of characters.
    "sub-agent": {
        "memories": (
            "memory.call_memories:at_sub_agent",
            "memories_dir/.prompt-index",
            "memories.prompt_characters",
        )
    },
}

# The steps of upkeep, in their order: functions of the `Run` in app/upkeep/run.py. The step `store`
# opens the store and runs the steps of UPKEEP_IN_STORE while it is open.
UPKEEP = {
    "leftover files": "app.upkeep.state_files:remove_leftovers",
    "leftover archives": "history.archives.upkeep:remove_leftovers",
    "leftover memories": "memory.upkeep:remove_leftovers",
    "store": "history.store.upkeep:use",
    "rules": "app.upkeep.rules:follow_in_upkeep",
    "titles": "app.upkeep.state_files:drop_excluded_titles",
    "memories": "memory.upkeep:make",
    "team": "extras.team.upkeep:push",
    "conflicts": "history.conflicts:keep_in_upkeep",
}
UPKEEP_IN_STORE = {
    "forget": "app.upkeep.forget_journal:finish_in_upkeep",
    "ingest": "history.store.upkeep:ingest",
    "archives": "history.archives.upkeep:write",
    "copies": "history.copies.upkeep:keep",
}

# Functions of a `Run` that move files to private folders if rules exclude them, or back again.
FOLLOWING_RULES = {
    "archives": "history.archives.upkeep:follow_rules",
    "memories": "memory.upkeep:follow_rules",
}

# The steps that forget sessions for good, in their order: functions of a `Run` and of the values
# from `session-memory forget`. Each row also states the consequence if the step fails.
FORGETTING = {
    "messages": ("history.store.forgetting:note_messages", "nothing is forgotten yet"),
    "tombstones": ("history.store.forgetting:note_tombstones", "nothing is forgotten yet"),
    "memories": ("memory.upkeep:forget", "memories still contain it"),
    "archives": ("history.archives.upkeep:forget", "archives still contain it"),
    "rewritten": (
        "history.archives.upkeep:write_again",
        "archives of sessions that continued still contain it",
    ),
    "conversations": (
        "history.store.forgetting:delete_conversations",
        "the store still contains it",
    ),
    "kept": ("history.copies.upkeep:forget", "kept transcripts still contain it"),
    "copies": (
        "app.upkeep.state_files:forget_mirrors",
        "copies of the runtime's sessions still contain it",
    ),
    "cursors": (
        "app.upkeep.state_files:forget_state",
        "cursors contain its titles until the next prompt",
    ),
    "marks": ("history.marks:forget", "its labels and pins are still kept"),
    "titles": (
        "app.upkeep.state_files:forget_titles",
        "cursors contain titles made from it until the next prompt",
    ),
    "graph": ("extras.graph.upkeep:forget", "the knowledge graph still contains its facts"),
    "team": (
        "extras.team.upkeep:forget",
        "the team's store contains it until the next push",
    ),
    "set_aside": (
        "history.store.forgetting:delete_stores_set_aside",
        "damaged files that were set aside may still contain it",
    ),
    "free_pages": (
        "history.store.forgetting:drop_free_pages",
        "free pages of the store may still contain it",
    ),
}
