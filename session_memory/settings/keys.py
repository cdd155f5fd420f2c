"""The table of all keys that config.yaml may hold: what a value may be, its default, what it is for.

The check (check.py), the values in force (sections.py), the sample file that a new home gets and the key reference in
docs/use/configuration.md all follow from it. `python -m session_memory.settings.keys` writes the last two anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .compiled import ASK, DEFAULTS, OFF, PROMPT_CHARACTERS, TELL

if TYPE_CHECKING:
    from collections.abc import Mapping

# What a value may be. check.py has the check of each.
ANY_OF, WHOLE, NUMBER, FLAG, TEXT, TEXTS = "choice", "whole number", "number", "true or false", "text", "texts"
ASSISTANT, PATHS, RULES, PRICES = "name of the assistant", "paths", "rules", "prices"
STRATEGIES, MODEL = "ids of strategies", "name of a model"
URL, VARIABLE = "http(s) address", "name of a variable"
DATABASE, NAMES, HOMES = "address of a database", "names of directories", "agent homes"

SAME = object()


class Key(NamedTuple):
    """A key: `name` with the sections that it stands in, as `memory.watchPath`.

    `kind` is one of those above, with `low` and `high` for numbers and `choices` for a choice. `if_wrong` is in force
    where the value cannot be understood: the default, unless that could allow more than was meant. `sample` is shown in
    place of the default. A key with `about` '' is taken, but not shown.
    """

    name: str
    kind: str
    default: Any
    about: str
    low: float = 0
    high: float = 0
    choices: tuple[Any, ...] = ()
    if_wrong: Any = SAME
    sample: str = ""

    @property
    def section(self) -> str:
        """The section that the key stands in; '' for none."""
        return self.name.rpartition(".")[0]

    @property
    def last_name(self) -> str:
        """The key without its sections."""
        return self.name.rpartition(".")[2]

    @property
    def fallback(self) -> Any:
        """What is in force where the value cannot be understood."""
        return self.default if self.if_wrong is SAME else self.if_wrong

    @property
    def expected(self) -> str:
        """What a value should be, in a few words."""
        if self.kind in (WHOLE, NUMBER):
            return f"a {self.kind} from {self.low} to {self.high}"
        return _EXPECTED.get(self.kind) or " or ".join([_plain(choice) for choice in self.choices])


_EXPECTED = {
    FLAG: "true or false",
    TEXT: "a text",
    TEXTS: "a list such as [WebSearch]",
    ASSISTANT: "a name of at most 40 characters, not User, Task or Tool, which archives use themselves",
    PATHS: "an absolute path, or a list of them; ~ is your home directory",
    RULES: "for each a rule such as {ignore: true}: ignore, text or untrusted, true or false; share, as team.share",
    PRICES: "dollars for each model, such as {my-model: {input: 1, output: 5, cached: 0.1}}",
    STRATEGIES: "a list such as [extractive], each id once",
    MODEL: "the name of a model",
    DATABASE: "postgresql://USER@HOST/DATABASE, without a password",
    HOMES: "a list of paths, or for each path what its own file may set, such as {~/agents/anna: [team]}",
    NAMES: "a name for each directory, such as {~/work/app: app}",
    URL: "an address that begins with https:// or http://",
    VARIABLE: "the name of the environment variable that holds the key, never the key itself",
}

_MOST_TOKENS = 10**10

KEYS = (
    Key(
        "scope", ANY_OF, DEFAULTS["scope"],
        "Which sessions count as the others where they have no names: of the same repository or directory, or all.",
        choices=("project", "all"),
    ),
    Key(
        "first_sight_hours", NUMBER, DEFAULTS["first_sight_hours"],
        "How many hours back a session is read the first time it is seen.", 0, 24 * 365,
    ),
    Key("max_characters", WHOLE, DEFAULTS["max_characters"], "The most that is added to a prompt.", 100, 500),
    Key(
        "collisions", ANY_OF, DEFAULTS["collisions"],
        "Where two sessions have the same file or branch in hand: tell the agent; or ask you, too, before it edits\n"
        "what another has not committed, or moves the worktree under it with git; or off.",
        choices=(TELL, ASK, OFF),
    ),
    Key("assistant_name", ASSISTANT, DEFAULTS["assistant_name"], "How archives call the assistant."),
    Key(
        "archive_message_characters", WHOLE, DEFAULTS["archive_message_characters"],
        "How much archives keep of a message (0: all).", 0, 10**9,
    ),
    Key("archive_tools", FLAG, DEFAULTS["archive_tools"], "Whether archives show tool uses."),
    Key(
        "recent_conversations", WHOLE, DEFAULTS["recent_conversations"],
        "How many of a project's last conversations a new session is told of.", 0, 20,
    ),
    Key(
        "upkeep", ANY_OF, DEFAULTS["upkeep"],
        "When transcripts go into the store and finished conversations become memories: in the background as sessions\n"
        "start and end, by `session-memory watch` alone, or (off) not before somebody asks.",
        choices=("sessions", "watch", "off"), if_wrong="off",
    ),
    Key(
        "sessions", RULES, {},
        "Rules for single sessions, by name, title or id; a * at the end stands for any ending. With `ignore: true` a\n"
        "session is never mentioned, with `text: false` only who, when and how much; what is remembered of one with\n"
        "`untrusted: true` is kept apart.",
        sample='{scratch: {ignore: true}, email: {text: false}, "public-*": {text: false, untrusted: true}}',
    ),
    Key(
        "projects", RULES, {},
        "The same for a directory (absolute, or below ~/) and all below it; a * at the end stands for any ending.\n"
        "They hold for sessions that were started there, and for what others said while they were there.",
        sample='{~/private: {ignore: true}, "~/work/client-*": {text: false}}',
    ),
    Key(
        "homes", HOMES, {},
        "The agents' homes, beside those that were installed or made, and what the file of each may set itself that\n"
        "else counts from yours alone: watchPath (outside the home), team, or the id of a strategy, as summary.",
        sample="{~/agents/anna: [], ~/agents/bob: [summary, team]}",
    ),
    Key(
        "memory.watchPath", PATHS, None,
        "A directory of transcripts, or a list of them; without it all runtimes' own.",
        if_wrong=[], sample="~/.claude/projects",
    ),
    Key("memory.conversationGapMinutes", WHOLE, 60, "A silence longer than this ends a conversation.", 1, 7 * 24 * 60),
    Key(
        "memory.pollIntervalMs", WHOLE, 30_000,
        "How often `session-memory watch` looks for conversations that have ended.", 100, 24 * 3600 * 1000,
    ),
    Key("memory.minConversationMessages", WHOLE, 5, "What has fewer messages is too short to be remembered.", 1, 1000),
    Key(
        "memories.strategies", STRATEGIES, ["extractive"],
        "What makes them: extractive, summary, graphiti, or those that packages bring.",
    ),
    Key(
        "memories.tokens_per_day", WHOLE, 500_000,
        "The most that models may read and write in a day (UTC), all together.", 0, _MOST_TOKENS, if_wrong=0,
    ),
    Key("memories.tokens_per_conversation", WHOLE, 200_000, "And for one conversation.", 0, _MOST_TOKENS, if_wrong=0),
    Key("memories.attempts", WHOLE, 5, "How often is tried what failed, each time later.", 1, 100),
    Key(
        "memories.prompt_characters", WHOLE, PROMPT_CHARACTERS,
        "How much of `max_characters` memories may take that a prompt is about.", 0, 500,
    ),
    Key("memories.watch", FLAG, False, "Whether `session-memory watch` makes memories of what has ended."),
    Key("memories.chunking.strategy", ANY_OF, "exchange", "Where a conversation is cut for a model.",
        choices=("exchange",)),
    Key("memories.chunking.max_chunk_tokens", WHOLE, 1000, "The longest piece.", 100, 1_000_000),
    Key("memories.filtering.keep_user_messages", FLAG, True, "Whether a model reads what users said.", if_wrong=False),
    Key("memories.filtering.keep_agent_responses", FLAG, True, "And what agents said.", if_wrong=False),
    Key(
        "memories.filtering.keep_tool_structure", FLAG, True,
        "And a line for each tool use: its name, its main parameter, how it ended.", if_wrong=False,
    ),
    Key("memories.filtering.max_parameter_chars", WHOLE, 200, "The most of a parameter.", 20, 10_000),
    Key("memories.filtering.max_output_summary_chars", WHOLE, 200, "The most of how it ended.", 20, 10_000),
    Key("memories.filtering.omit_tool_outputs", ANY_OF, True, "", choices=(True,)),  # the store keeps neither
    Key("memories.filtering.omit_file_contents", ANY_OF, True, "", choices=(True,)),
    Key("memories.summary.model", MODEL, "haiku", "The model of the strategy `summary`, as Claude Code knows it."),
    Key("memories.summary.max_input_tokens", WHOLE, 30_000, "Longer conversations are read in parts.", 2000, 500_000),
    Key("memories.summary.max_output_tokens", WHOLE, 6000, "The most that it writes at a time.", 1000, 64_000),
    Key("memories.summary.timeout_seconds", WHOLE, 300, "How long an answer may take.", 1, 1500),
    Key("memories.graphiti.url", TEXT, "", "The graph database (see graph.md); '' for one in a file beside the store."),
    Key("memories.graphiti.password_env", VARIABLE, "NEO4J_PASSWORD", "The variable with its password."),
    Key("memories.graphiti.model", MODEL, "gpt-4.1-mini", "The model of the strategy `graphiti`."),
    Key("memories.graphiti.small_model", TEXT, "", "A smaller one for simple questions; '' for the same."),
    Key("memories.graphiti.base_url", URL, "", "Where its API lies; '' for OpenAI's."),
    Key("memories.graphiti.key_env", VARIABLE, "OPENAI_API_KEY", "The variable with its key."),
    Key("memories.graphiti.embedder", MODEL, "text-embedding-3-small", "The model that compares texts."),
    Key("memories.graphiti.embedder_base_url", URL, "", "Where the API of that lies; '' for the same."),
    Key("memories.graphiti.embedder_key_env", VARIABLE, "", "The variable with its key; '' for the same."),
    Key("memories.graphiti.dimensions", WHOLE, 1024, "The numbers that it gives for a text.", 8, 8192),
    Key("memories.graphiti.max_output_tokens", WHOLE, 4096, "The most that a model writes at a time.", 256, 64_000),
    Key("memories.graphiti.timeout_seconds", WHOLE, 300, "How long an answer may take.", 1, 1500),
    Key(
        "memories.prices", PRICES, {}, "Dollars for a million tokens, where ours are wrong.",
        sample="{my-model: {input: 1, output: 5, cached: 0.1}}",
    ),
    Key(
        "team.url", DATABASE, "", "Its database: `session-memory team join` sets it.", if_wrong="",
        sample="postgresql://ann@db.example.org/team",
    ),
    Key("team.machine", TEXT, "", "What this machine is called there.", sample="laptop"),
    Key(
        "team.share", ANY_OF, "mine",
        "Who may read a session there, where no rule says otherwise:\n"
        "you on all your machines, the team, or (off) nobody.",
        choices=("mine", "team", "off"), if_wrong="off",
    ),
    Key(
        "team.projects", NAMES, {}, "What repositories without a remote `origin` are called.",
        sample="{~/work/app: app}",
    ),
    Key(
        "host.model", MODEL, None, "The model, as Claude Code knows it; without it the runtime's own choice.",
        sample="claude-sonnet-5",
    ),
    Key(
        "host.groups_at_once", WHOLE, 5,
        "How many groups talk to a model at a time; the others wait.", 1, 100,
    ),
    Key(
        "host.idle_seconds", NUMBER, 60,
        "How long an agent with nothing to do is kept ready for the next message.", 0, 24 * 3600,
    ),
    Key(
        "host.allowed_tools", TEXTS, [],
        "What agents may use unasked, besides the files of their own group.\n"
        "Bash, or Read without a path, reaches other groups too.",
        sample="[WebSearch]",
    ),
    Key("host.attempts", WHOLE, 5, "How often a message is tried before the chat hears of no answer.", 1, 20),
)  # fmt: skip

SECTIONS = {
    "memory": "The store of all sessions: what `session-memory ingest`, `search` and `watch` go by.",
    "memories": "How finished conversations become memories: `session-memory process`.",
    "memories.chunking": "",
    "memories.filtering": "What a model gets to read of a conversation.",
    "memories.summary": "",
    "memories.graphiti": "",
    "team": "A store that several machines or people share: `session-memory team`.",
    "host": "A host of several groups of agents: `session-memory host run`.",
}
# Under these ids a strategy finds its own keys, and refuses to work with wrong ones.
BUILT_IN_STRATEGIES = ("extractive", "summary", "graphiti")

_HEAD = "# session-memory: settings of this home. Every key is optional; these are the defaults.\n"
_BEGIN = "<!-- the keys: written by python -m session_memory.settings.keys -->\n"
_END = "<!-- end of the keys -->\n"


def defaults(section: str) -> dict[str, Any]:
    """The defaults of the keys in a section, by their last names."""
    return {key.last_name: key.default for key in KEYS if key.section == section}


def filled(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a section that was checked, with the defaults of the keys that it does not set."""
    return {**defaults(section), **values}


def written(value: Any) -> str:
    """A value as it stands in YAML, on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(key)}: {written(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(written, value)) + "]"
    if not isinstance(value, str):
        return str(value)
    is_plain = value.replace("-", "").replace("_", "").replace(".", "").isalnum() and value[0].isalpha()
    is_word = value.lower() in ("true", "false", "yes", "no", "on", "off", "null", "y", "n")
    return value if is_plain and not is_word else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _plain(choice: Any) -> str:
    return choice if isinstance(choice, str) else written(choice)


def sample() -> str:
    """The commented config.yaml that a new home gets: every key with its default."""
    return _HEAD + _commented(KEYS)


def reference() -> str:
    """The keys of config.yaml as tables of Markdown, one for each section."""
    parts = []
    for section in dict.fromkeys(key.section for key in KEYS):
        title = f"`{section}`" if section else "Keys without a section"
        about = SECTIONS.get(section, "")
        rows = ["| Key | Value | Default | |", "|---|---|---|---|"]
        for key in KEYS:
            if key.section == section and key.about:
                value = key.expected.replace("|", "\\|")
                about_key = key.about.replace("\n", " ")
                rows.append(f"| `{key.last_name}` | {value} | `{written(key.default)}` | {about_key} |")
        parts.append("\n\n".join([f"### {title}", *([about] if about else []), "\n".join(rows)]))
    return "\n\n".join(parts) + "\n"


def with_reference(page: str) -> str:
    """A page of documentation with the key reference as it is now between its two marks."""
    before, _, rest = page.partition(_BEGIN)
    return f"{before}{_BEGIN}\n{reference()}\n{_END}{rest.partition(_END)[2]}"


def _commented(keys: tuple[Key, ...]) -> str:
    lines: list[str] = []
    shown: set[str] = set()
    for key in [key for key in keys if key.about]:
        sections = key.name.split(".")[:-1]
        for depth in range(len(sections)):
            section = ".".join(sections[: depth + 1])
            if section not in shown:
                shown.add(section)
                about = SECTIONS[section] and f"# {SECTIONS[section]}"
                indent = "  " * depth
                lines += (
                    ["", about, f"# {section}:"] if not depth else [f"# {indent}{sections[depth]}:  {about}".rstrip()]
                )
        value = key.sample or written(key.default)
        if sections:
            indent = "  " * len(sections)
            *above, beside = key.about.split("\n")
            lines += [f"# {indent}# {line}" for line in above]
            lines.append(f"{f'# {indent}{key.last_name}: {value}':<40} # {beside}")
        else:
            lines += ["", *(f"# {line}" for line in key.about.split("\n")), f"# {key.name}: {value}"]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes the sample of the templates and the key reference of the documentation."""
    from pathlib import Path

    root = Path(__file__).resolve().parents[2]
    (root / "templates/_base/.session-memory/config.yaml").write_text(sample())
    page = root / "docs/use/configuration.md"
    page.write_text(with_reference(page.read_text()))


if __name__ == "__main__":
    main()
