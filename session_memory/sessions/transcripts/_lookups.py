"""Recognises tool uses that only look something up in our memory. Pure.

They and their results are not content: if they were stored, the first search for something would be
the best hit of the second. The records of every runtime use this one rule, so the store, patterns,
archives and the counts of an update skip lookups. The agent's own words about the result stay.
"""

from ...common.text.words import word_lists

_WORDS = word_lists()  # words.tsv describes each of them
TOOLS = (
    "search_sessions",
    "read_session",
    "list_sessions",
    "seen_error",
    "why",
    "search_graph",
    "search_team",
)
SKILLS = ("recall", "sessions")
COMMANDS = _WORDS["lookup commands"]
SCRIPTS = ("session_reader.py",)
COMMAND_SCRIPT = "scripts/memory.py"  # the command, as plugins and packages bring it
ARCHIVES = ("/.session-memory/conversations/", "/.session-memory}/conversations/")
# a command line without any of these is not a lookup
_NAMES = ("session-memory", "session_memory", "memory.py", *SCRIPTS)
_FILTERS = _WORDS["filters"]
_READERS = _FILTERS | {"find", "ls"}
_PLUMBING = _WORDS["plumbing"]
_BEFORE = _WORDS["before lookups"]
_SHELLS = ("bash", "sh", "zsh")
_FURTHEST = 6  # words after the program; the subcommand is among them


def is_lookup(name: str, kind: str, argument: str) -> bool:
    """Check if a tool use only looks something up in our memory.

    It may use our tool on any server, a skill, a command or a script, or read an archive.
    `argument` is the most informative one."""
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
    """Check if a command line runs a lookup and nothing else of interest.

    It may change directory or show the result."""
    if not any(name in command for name in _NAMES):
        return False
    from ...common.text.shell_words import simple_commands

    command = command.replace("${SESSION_MEMORY_DIR:-", "").replace(
        "/.session-memory}", "/.session-memory"
    )
    has_lookup = False
    for simple in simple_commands(command.replace("$(", "(")):
        words = [word.text for word in simple.words]
        while words and _stands_before(words[0]):
            del words[0]
        program = (
            words[0].replace("\\", "/").rpartition("/")[2].removesuffix(".exe") if words else ""
        )
        if _is_ours(program, words):
            has_lookup = True
        elif (
            program
            and program not in _PLUMBING
            and not (program in _FILTERS and simple.before == "|")
        ):
            return False
    return has_lookup


def _is_ours(program: str, words: list[str]) -> bool:
    """Check if a command is a lookup.

    It is our program, a shell or interpreter that runs it, or a reader of archives."""
    if (
        program in _SHELLS
        and len(words) == 3
        and words[1].startswith("-")
        and words[1].endswith("c")
    ):
        return _runs_lookup(words[2])
    if program.startswith(("python", "pypy")):
        ours = ("session_memory", COMMAND_SCRIPT, *SCRIPTS)
        at = next((at for at, word in enumerate(words) if at and word.endswith(ours)), 0)
        if not at or not all(word.startswith("-") for word in words[1:at]):
            return False
        words = words[at:]
        program = words[0].rpartition("/")[2]
    if program in SCRIPTS:
        return True
    is_script = bool(words) and words[0].replace("\\", "/").endswith(COMMAND_SCRIPT)
    if is_script or program in ("session-memory", "session_memory"):
        return not COMMANDS.isdisjoint(words[1 : 1 + _FURTHEST])
    return program in _READERS and any(place in f"{word}/" for word in words for place in ARCHIVES)


def _stands_before(word: str) -> bool:
    """Check if a word may precede a program.

    It may be an assignment, or a program that runs another, with its options."""
    is_assignment = "=" in word and word.partition("=")[0].isidentifier()
    return (
        is_assignment or word in _BEFORE or word.startswith("-") or word.replace(".", "").isdigit()
    )
