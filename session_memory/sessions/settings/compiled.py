"""The settings of a home: the keys that a prompt needs, and config.yaml compiled to JSON.

It is compiled once, so a prompt does not pay for a YAML parser. A section of config.yaml is a class
whose attributes are its keys: each states its kind, default and documentation once. sections.py has
the other sections; check.py, keys.py and docs/reference/settings.md follow from them."""

from __future__ import annotations

from ...common.system.files import os, read_whole
from ...common.system.json import as_object, unsealed
from ...common.text.paths import is_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import stat_result
    from typing import TypeVar

    from typing_extensions import TypedDict, Unpack

    from .rules import KnownDirectories, NameRules, PatternRule, Rule, RuleWords

    Value = TypeVar("Value")

    class KeyOptions(TypedDict, total=False):
        """The less frequent parts of a `Key`."""

        choices: tuple[object, ...]
        if_wrong: object
        sample: str
        alias: str


ALL, COLLISIONS = "all", "collisions"  # as `updates`
TELL, ASK, OFF = "tell", "ask", "off"  # on a collision
ONLY = "only"  # as `tracking`
NOTICES_WITHOUT_WATCH = ("desktop", "command")  # as `notices`: a hook can send these
PROMPT_CHARACTERS = 200  # of memories; the default of a key in the section `memories`

SAME = object()


class Kind:
    """The kinds of values. check.py has the check of each."""

    ANY_OF, WHOLE, NUMBER, FLAG, TEXT, TEXTS = (
        "choice",
        "whole number",
        "number",
        "true or false",
        "text",
        "texts",
    )
    ASSISTANT, PATHS, RULES, PRICES = "name of the assistant", "paths", "rules", "prices"
    STRATEGIES, MODEL = "ids of strategies", "name of a model"
    URL, VARIABLE = "http(s) address", "name of a variable"
    DATABASE, NAMES, AGENTS = "address of a database", "names of directories", "agent homes"


class Key:
    """A key of config.yaml, an attribute of its section.

    It is the default of every instance that does not set it. `low` and `high` limit numbers,
    `choices` a choice. If a value is invalid, `if_wrong` applies: the default, unless that could
    allow more than was meant. `sample` is shown instead of the default. A key with `about` '' is
    accepted, but not documented. `alias` is its former name."""

    section = last_name = ""

    def __init__(
        self,
        kind: str,
        default: object,
        about: str,
        low: float = 0,
        high: float = 0,
        *,
        choices: tuple[object, ...] = (),
        if_wrong: object = SAME,
        sample: str = "",
        alias: str = "",
    ) -> None:
        self.kind = kind
        self.default = default
        self.about = about
        self.low = low
        self.high = high
        self.choices = choices
        self.if_wrong = if_wrong
        self.sample = sample
        self.alias = alias

    def __set_name__(self, owner: type[Section], name: str) -> None:
        self.section, self.last_name = owner.SECTION, name

    def __get__(self, section: Section | None, owner: type[Section]) -> object:
        return self if section is None else self.default

    @property
    def name(self) -> str:
        """The key with its sections, such as store.watch_path."""
        return f"{self.section}.{self.last_name}" if self.section else self.last_name

    @property
    def fallback(self) -> object:
        """The value that applies if the given one is invalid."""
        return self.default if self.if_wrong is SAME else self.if_wrong


def key(
    kind: str,
    default: Value,
    about: str,
    low: float = 0,
    high: float = 0,
    **more: Unpack[KeyOptions],
) -> Value:
    """Return a `Key`, for an attribute that has the type of its values."""
    return Key(kind, default, about, low, high, **more)  # type: ignore[return-value]


class Section:
    """A section of config.yaml, as set, with the default of each key that is not."""

    SECTION = ""  # its name, after the names of its parent sections
    ABOUT = ""

    def __init__(self, **values: object) -> None:
        self.__dict__.update(values)

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and isinstance(other, Section)
            and self.as_dict() == other.as_dict()
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.as_dict()})"

    @classmethod
    def table(cls) -> list[Key]:
        return [attribute for attribute in vars(cls).values() if isinstance(attribute, Key)]

    def as_dict(self) -> dict[str, object]:
        return {setting.last_name: getattr(self, setting.last_name) for setting in self.table()}


class Settings(Section):
    """The keys without a section.

    `store`, `memories`, `team` and `host` are those sections as set, for sections.py. `rules` are
    patterns of sessions with a rule each, `projects` patterns of directories by file. `faults` describe
    invalid settings in the files, a line each."""

    scope: str = key(
        Kind.ANY_OF,
        "project",
        "Which sessions without names see each other: only sessions in the same repository or "
        "directory, or all.",
        choices=("project", "all"),
    )
    first_sight_hours: float = key(
        Kind.NUMBER,
        24,
        "How many hours of another session's activity the first update covers.",
        0,
        24 * 365,
    )
    max_characters: int = key(
        Kind.WHOLE, 500, "The most characters that are added to a prompt or a tool call.", 100, 500
    )
    updates: str = key(
        Kind.ANY_OF,
        ALL,
        "Update an agent on all other sessions (all), or only warn it (collisions).",
        choices=(ALL, COLLISIONS),
    )
    collisions: str = key(
        Kind.ANY_OF,
        TELL,
        "If two sessions work on the same file or branch, tell the agent (tell); also ask "
        "you\n(Claude Code, omp, Pi) before it edits another session's uncommitted file or changes its worktree "
        "with git (ask);\nor do nothing (off).",
        choices=(TELL, ASK, OFF),
    )
    assistant_name: str = key(Kind.ASSISTANT, "Assistant", "The name of the assistant in archives.")
    archive_message_characters: int = key(
        Kind.WHOLE, 0, "How many characters of each message archives keep; 0: all.", 0, 10**9
    )
    archive_times: bool = key(Kind.FLAG, True, "Show the time of each message in archives.")
    archive_tools: bool = key(Kind.FLAG, False, "Show tool uses in archives.")
    archive_history: bool = key(
        Kind.FLAG,
        True,
        "Let upkeep archive sessions from before the install too, starting with sessions that their "
        "runtime will soon delete.",
    )
    statusline: bool = key(
        Kind.FLAG,
        False,
        "Show active sessions in the status line: `session-memory config statusline on`.",
    )
    notices: str = key(
        Kind.ANY_OF,
        OFF,
        "How you hear that a session begins to wait or ask: as a notice of the desktop (notify-send, "
        "osascript),\nby `notice_command`, or with the bell of the terminal with `session-memory agents --watch`. "
        "Set it with\n`session-memory config notices`, which also adds the hooks. Only the settings in "
        "your home directory count.",
        choices=(OFF, "desktop", "bell", "command"),
    )
    notice_command: Sequence[str] = key(
        Kind.TEXTS,
        [],
        "The program that shows a notice, and its arguments; the text follows as the last one.",
        sample="[curl, -sS, https://ntfy.sh/my-topic, -d]",
    )
    recent_conversations: int = key(
        Kind.WHOLE,
        0,
        "How many of the project's last conversations a new session is told about, a line each.",
        0,
        20,
    )
    upkeep: str = key(
        Kind.ANY_OF,
        "sessions",
        "When to store transcripts and turn finished conversations into memories: in the "
        "background as sessions start\nand end (sessions); while `session-memory watch` runs "
        "(watch); or when you run a command (off).",
        choices=("sessions", "watch", "off"),
        if_wrong="off",
    )
    upkeep_minutes: int = key(
        Kind.WHOLE,
        0,
        "The minutes between two runs of upkeep, which then also start while sessions work; 0: only "
        "as sessions start\nand end, at most every ten minutes.",
        0,
        24 * 60,
    )
    keep: str = key(
        Kind.ANY_OF,
        "text",
        "What to keep of a session that its runtime deletes: its text; also its files for\n"
        "`session-memory restore`, either whole (byte for byte, with any secrets in them) or "
        "redacted; or nothing (none).",
        choices=("text", "redacted", "whole", "none"),
    )
    disk_bytes: int = key(
        Kind.WHOLE,
        10_000_000_000,
        "The most bytes that all data may take on the disk; 0: no limit. To make room, copies of "
        "transcripts that\nthe runtime still has are deleted; data that exists only here never is.",
        0,
        10**15,
        alias="keep_bytes",
    )
    sessions: dict[str, RuleWords] = key(
        Kind.RULES,
        {},
        "Rules for single sessions, by name, title or id; a * at the end matches any ending. "
        "`ignore: true` never mentions\nthe session; `quote: false` mentions only its name, when it was active and how "
        "much;\n`isolate_memories: true` keeps its memories apart.",
        sample='{scratch: {ignore: true}, email: {quote: false}, "public-*": {quote: false, '
        "isolate_memories: true}}",
    )
    projects: dict[str, RuleWords] = key(
        Kind.RULES,
        {},
        "Rules for a directory (absolute, or below ~/) and everything below it; a * at the end "
        "matches any ending.\nThey apply to sessions started there, and to messages that other "
        "sessions wrote while they worked there.",
        sample='{~/private: {ignore: true}, "~/work/client-*": {quote: false}}',
    )
    tracking: str = key(
        Kind.ANY_OF,
        "all",
        "Which sessions are tracked: all, except those that rules hide; or only sessions in "
        "directories that a rule\nin `projects` lists without `ignore: true`.",
        choices=("all", ONLY),
        if_wrong=ONLY,
    )
    runtimes: Sequence[str] | None = key(
        Kind.PATHS,
        None,
        "Runtimes in other packages: the folder of each Python package, or its module, with the "
        "object `RUNTIME`.\nTheir code runs in hooks and commands. `install` and `doctor` read this "
        "key, and only from `config.yaml` in your\nown `~/.session-memory`.",
        if_wrong=[],
        sample="~/src/anvil-runtime/anvil_runtime",
    )
    homes: dict[str, list[str] | None] | list[str] = key(
        Kind.AGENTS,
        {},
        "Agent homes besides those that `install` or `new` registered. For each, list the settings "
        "that its own file may make\nas well as yours: watch_path (outside the home), team, keep, or "
        "a strategy such as summary.",
        sample="{~/agents/anna: [], ~/agents/bob: [summary, team]}",
    )

    def __init__(
        self,
        values: dict[str, object],
        rules: Iterable[PatternRule] = (),
        faults: Sequence[str] = (),
        projects: Iterable[Iterable[PatternRule]] = (),
    ) -> None:
        super().__init__(**values)
        self.store: dict[str, object] = as_object(values.get("store"))
        self.memories: dict[str, object] = as_object(values.get("memories"))
        self.team: dict[str, object] = as_object(values.get("team"))
        self.host: dict[str, object] = as_object(values.get("host"))
        self.faults = faults
        self._rules = [(pattern, rule) for pattern, rule in rules]
        self._names: NameRules | None = None
        self._projects = [[(pattern, rule) for pattern, rule in file] for file in projects]
        self._directories: KnownDirectories | None = None

    @property
    def shared_url(self) -> str:
        """The address of the store that is shared with other machines, '' for none."""
        return str(self.team.get("url", ""))

    @property
    def shared_machine(self) -> str:
        """The name of this machine in that store, '' for none."""
        return str(self.team.get("machine", ""))

    @property
    def first_sight_seconds(self) -> float:
        """The time, in seconds, that a session is read back on first sight."""
        return self.first_sight_hours * 3600

    @property
    def wants_notice_hooks(self) -> bool:
        """True if hooks are to send notices, which only the person's own settings can say."""
        return self.notices in NOTICES_WITHOUT_WATCH

    @property
    def upkeep_seconds(self) -> int:
        """The least time, in seconds, between the starts of two runs of upkeep."""
        return self.upkeep_minutes * 60 or 600

    @property
    def only_warns(self) -> bool:
        """Check if agents only get warnings."""
        return self.updates == COLLISIONS

    @property
    def has_rules(self) -> bool:
        return bool(self._rules or self._projects)

    @property
    def has_project_rules(self) -> bool:
        return bool(self._projects)

    @property
    def has_name_rules(self) -> bool:
        """Check if a rule may refer to a session's name or title, not only to an id."""
        return any([pattern != "*" and not is_id(pattern) for pattern, _ in self._rules])

    def rule(self, *names: str) -> Rule:
        """Return the rule for a session known by any of `names`, wherever it started."""
        from .rules import NameRules

        self._names = self._names or NameRules(self._rules)
        return self._names.strictest(names)

    def rule_for_directory(self, *spellings: str) -> Rule:
        """Return the rule for messages written while in a directory, in any session.

        It may have several spellings."""
        from .rules import KnownDirectories, rule_in

        self._directories = self._directories or KnownDirectories()
        return rule_in(self._projects, spellings, self._directories)


def load(config_file: str, compiled_file: str, rules_files: Sequence[str] = ()) -> Settings | None:
    """Return the settings in `config_file`, or the defaults, with the rules of `rules_files`.

    The defaults apply if `config_file` is missing. Return None if `compiled_file` was not made from
    the current files (see `check.compile_files`)."""
    stamps = stamps_of(config_file, rules_files)
    if not any(stamps):
        return Settings({})
    try:
        compiled = unsealed(read_whole(compiled_file))
        if compiled["stamps"] == stamps:
            return Settings(
                compiled["values"],
                compiled["rules"],
                compiled["faults"],
                compiled["projects_by_file"],
            )
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def stamps_of(config_file: str, rules_files: Sequence[str]) -> list[list[int] | None]:
    """Return the stamps of a settings file and of the files of rules; None for a missing one."""
    return [stamp(path) for path in (config_file, *rules_files)]


def stamp(path: str) -> list[int] | None:
    """Return values that change with a file or a directory's content; None if there is none."""
    try:
        status: stat_result = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:  # it exists and cannot be read: a fault
        return [0, 0, 0]
    return [status.st_mtime_ns, status.st_size, status.st_ino]
