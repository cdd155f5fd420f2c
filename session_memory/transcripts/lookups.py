"""Which tool uses are lookups in our own memory: what an agent asks there is no content, nor is what it is told. Pure.

Were they kept, the first search for something would be the best hit of the second one. This is the one rule: the
records of every runtime ask it, so that neither store, patterns and archives nor the counts of an update know of a
lookup. What the agent says about what it found stays.
"""

from __future__ import annotations

TOOLS = ("search_sessions", "read_session", "list_sessions")
SKILLS = ("recall", "sessions")
COMMANDS = frozenset(("search", "show", "conversations", "errors", "patterns", "memories", "graph"))
SCRIPTS = ("session_reader.py",)
COMMAND_SCRIPT = "scripts/memory.py"  # the command, as plugins and packages bring it
ARCHIVES = ("/.session-memory/conversations/", "/.session-memory}/conversations/")
_READERS = frozenset((
    "cat", "less", "more", "head", "tail", "bat", "grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "awk", "find",
    "ls"
))  # fmt: skip
_PROGRAMS = ("/session-memory", "/session_reader.py", "/memory.py")
_BREAK = "\0"  # between two simple commands
# What may stand before a program that it runs.
_BEFORE = frozenset((
    "sudo", "env", "command", "exec", "time", "timeout", "nice", "nohup", "uv", "uvx", "run", "npx", "bash", "sh",
    "zsh", "do", "then", "else", "!", "{"
))  # fmt: skip
_FURTHEST = 6  # words behind the program, among which its subcommand is


def is_lookup(name: str, kind: str, argument: str) -> bool:
    """Whether a tool use only looks something up in our memory: by a tool of ours on whatever server, a skill, a
    command, a script, or by reading an archive. `argument` is the one that tells most of it."""
    if name.endswith(TOOLS):
        server = name.removesuffix(next(tool for tool in TOOLS if name.endswith(tool)))
        return not server[-1:].isalnum()
    if name in ("Skill", "skill"):
        plugin, _, skill = argument.strip().lstrip("/").rpartition(":")
        return skill in SKILLS and plugin in ("", "session-memory")
    if kind == "command":
        return _runs_lookup(argument)
    is_skill = argument.replace("\\", "/").endswith(tuple(f"/{skill}/SKILL.md" for skill in SKILLS))
    return kind == "read" and (is_skill or any(place in f"{argument}/" for place in ARCHIVES))


def _runs_lookup(command: str) -> bool:
    for quote in "\"'":
        if quote in command:  # a program's path in quotes may have spaces
            parts = command.split(quote)
            paths = [part.replace(" ", "_") if part.endswith(_PROGRAMS) else part for part in parts[1::2]]
            parts[1::2] = paths
            command = quote.join(parts)
    for separator in ";&|\n()`":
        command = command.replace(separator, f" {_BREAK} ")
    words = [word.strip("\"'") for word in command.replace("\\" + _BREAK, " ").split()]
    before: list[str] = []
    for at, word in enumerate(words):
        if word == _BREAK:
            before = []
            continue
        program = word.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
        if program in SCRIPTS and _is_program(before):
            return True
        is_script = word.replace("\\", "/").endswith(COMMAND_SCRIPT)
        is_ours = program == "session-memory" or is_script or (word == "session_memory" and before[-1:] == ["-m"])
        if is_ours and _is_program(before):
            rest = words[at + 1 : at + 1 + _FURTHEST]
            rest = rest[: rest.index(_BREAK)] if _BREAK in rest else rest
            if not COMMANDS.isdisjoint(rest):
                return True
        is_archive = word.startswith(("conversations/", "./conversations/")) or any(p in f"{word}/" for p in ARCHIVES)
        if is_archive and before and before[0].rpartition("/")[2] in _READERS:
            return True
        before.append(word)
    return False


def _is_program(before: list[str]) -> bool:
    """Whether the word behind those in `before` is the program that a shell runs, perhaps by way of an interpreter."""
    return all(
        word in _BEFORE
        or word.startswith("-")
        or "=" in word
        or word.replace(".", "").isdigit()
        or word.rpartition("/")[2].startswith(("python", "pypy"))
        for word in before
    )
