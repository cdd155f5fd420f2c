"""config.yaml: what may stand in it, and the check that only that does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import ConfigError
from . import memories_section, plugin_data
from .compiled import DEFAULTS

_OWN_KEYS = """\
# session-memory: settings of this home. Every key is optional; these are the defaults.

# Which sessions of a plain Claude Code user count as the others: those of the same project, or all.
# scope: project

# How far back a session is read the first time it is seen.
# first_sight_hours: 24

# The most that is added to a prompt.
# max_characters: 500

# How archives call the assistant, how much they keep of a message (0: all), whether they show tool uses.
# assistant_name: Assistant
# archive_message_characters: 2000
# archive_tools: false

# How many of a project's last conversations a new session is told of.
# recent_conversations: 0

# Rules for single sessions, by name, title or id; a * at the end stands for any ending.
# sessions:
#   scratch: {ignore: true}      # never mentioned
#   email: {text: false}         # only who, when and how much, none of its text
#   public-*: {text: false, untrusted: true} # and what is remembered of it is kept apart

# The store of all sessions: what `session-memory ingest`, `search` and `watch` go by.
# memory:
#   watchPath: ~/.claude/projects    # a directory of transcripts, or a list of them; without it all runtimes' own
#   conversationGapMinutes: 60       # a silence longer than this ends a conversation
#   pollIntervalMs: 30000            # how often `watch` looks for conversations that have ended
#   minConversationMessages: 5       # what has fewer messages is too short to be remembered

"""
DOCUMENTED = _OWN_KEYS + memories_section.DOCUMENTED

_KEYS = (*DEFAULTS, "memory", "memories")
_MEMORY_NUMBERS = {
    "conversationGapMinutes": (1, 7 * 24 * 60),
    "pollIntervalMs": (100, 24 * 3600 * 1000),
    "minConversationMessages": (1, 1000),
}
_RESERVED_NAMES = ("User", "Tool")


def read(path: str | Path) -> dict[str, Any]:
    """The keys that `path` sets, checked. Raises ConfigError with the line for whatever is not as documented."""
    text = Path(path).read_bytes().decode("utf-8", "replace")
    if all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines()):
        return {}
    yaml = _yaml(path)
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise ConfigError(f"{where}: {getattr(error, 'problem', None) or error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: it should be keys and values, such as `scope: all`")
    _check(values, str(path))
    return values


def combined(files: list[dict[str, Any]]) -> dict[str, Any]:
    """The values of the first file, with the rules for sessions of all."""
    shared = [values["sessions"] for values in files[1:] if values.get("sessions")]
    return {**files[0], "shared_sessions": shared} if shared else files[0]


def _yaml(path: str | Path) -> Any:
    """PyYAML; a hook runs without site-packages (-S), so these are added where the first import fails, and those that
    a plugin has set up for itself."""
    try:
        import yaml
    except ImportError:
        import site

        site.main()
        plugin_data.add_site_packages()
        try:
            import yaml
        except ImportError:
            raise ConfigError(
                f"{path}: PyYAML is needed to read it",
                "run install.py again where a package index can be reached, or remove the file",
            ) from None
    return yaml


def _check(values: dict[Any, Any], path: str) -> None:
    for key in values:
        if key not in _KEYS:
            raise ConfigError(f"{path}: unknown key {key!r}", f"the keys are {', '.join(_KEYS)}")
    if values.get("scope", "project") not in ("project", "all"):
        raise ConfigError(f"{path}: scope is {values['scope']!r}", "it is project or all")
    _check_number(values, "first_sight_hours", 0, 24 * 365, path)
    _check_number(values, "max_characters", 100, 500, path)
    _check_number(values, "archive_message_characters", 0, 10**9, path)
    _check_number(values, "recent_conversations", 0, 20, path)
    if not isinstance(values.get("archive_tools", False), bool):
        raise ConfigError(f"{path}: archive_tools is {values['archive_tools']!r}", "it is true or false")
    name = values.get("assistant_name", "Assistant")
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= 40 or "*" in name:
        raise ConfigError(f"{path}: assistant_name is {name!r}", "it is a name of at most 40 characters")
    if name in _RESERVED_NAMES:
        hint = f"archives use {' and '.join(_RESERVED_NAMES)} themselves"
        raise ConfigError(f"{path}: assistant_name is {name!r}", hint)
    sessions = values.get("sessions", {})
    if not isinstance(sessions, dict):
        raise ConfigError(f"{path}: sessions should map a name to its rule, such as `email: {{text: false}}`")
    for name, rule in sessions.items():
        if not isinstance(name, str) or not isinstance(rule, dict):
            raise ConfigError(f"{path}: sessions: {name!r} should be a name with a rule such as `{{ignore: true}}`")
        for key, value in rule.items():
            if key not in ("ignore", "text", "untrusted") or not isinstance(value, bool):
                message = f"{path}: sessions: {name}: {key}: {value!r}"
                raise ConfigError(message, "a rule is ignore, text or untrusted, true or false")
    if "memory" in values:
        _check_memory(values["memory"], f"{path}: memory")
    if "memories" in values:
        from .memories_section import check

        check(values["memories"], path)


def _check_memory(values: Any, path: str) -> None:
    """The section of the store; its keys are those of the seed that it comes from."""
    keys = ("watchPath", *_MEMORY_NUMBERS)
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: it should be keys and values", f"the keys are {', '.join(keys)}")
    for key, value in values.items():
        if key not in keys:
            raise ConfigError(f"{path}: unknown key {key!r}", f"the keys are {', '.join(keys)}")
        if key == "watchPath":
            paths = value if isinstance(value, list) else [value]
            if not paths or not all(isinstance(one, str) and one.startswith(("/", "~")) for one in paths):
                hint = "it is an absolute path, or a list of them; ~ is your home directory"
                raise ConfigError(f"{path}: watchPath is {value!r}", hint)
        elif isinstance(value, float):
            raise ConfigError(f"{path}: {key} is {value!r}", "it is a whole number")
        else:
            _check_number(values, key, *_MEMORY_NUMBERS[key], path)


def _check_number(values: dict[Any, Any], key: str, low: int, high: int, path: str) -> None:
    value = values.get(key, low)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ConfigError(f"{path}: {key} is {value!r}", f"it is a number from {low} to {high}")
