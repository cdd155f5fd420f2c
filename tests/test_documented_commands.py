"""Every command in README, docs/ and the skills is valid.

Its words can be parsed, and its modules, files and options exist. Commands that neither serve nor
install are run in a home with sessions.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from records import exchange
from store_scene import StoreUser

from bench import command
from session_memory.cli import main, parser_of

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md")) + sorted((ROOT / "skills").glob("*/SKILL.md"))

COMMAND = r"(?:session-memory|python3?|\.venv/bin/python)(?: [^`\n]+)?"
IN_BLOCK = re.compile(rf"^    ({COMMAND})$", re.MULTILINE)
IN_TEXT = re.compile(rf"`({COMMAND})`")
ENDS = {"|", ">", "&", ";", "&&"}
# They go on until they are stopped, or change the machine, or ask another one: the tests of their
# rooms run them.
NOT_RUN = {"watch", "page", "host", "mcp", "team", "install", "uninstall", "new", "doctor", "graph"}


def commands_in(pages: list[Path], pattern: re.Pattern[str]) -> Iterator[tuple[str, ...]]:
    """The words of each command on the pages that stands as the pattern says, once: without
    comments, and without what follows it in a shell."""
    seen = set()
    for page in pages:
        for line in pattern.findall(page.read_text().replace("${CLAUDE_PLUGIN_ROOT}/", "")):
            words = shlex.split(line, comments=True)
            end = min(
                (number for number, word in enumerate(words) if word in ENDS), default=len(words)
            )
            seen.add(tuple(words[:end]))
    yield from sorted(seen)


def as_our_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """What follows `session-memory` for words that come to the same, else ()."""
    if words[0] == "session-memory" or words[1:2] == ("scripts/memory.py",):
        return words[1 if words[0] == "session-memory" else 2 :]
    if words[1:2] == ("scripts/session_reader.py",):
        return ("sessions",) if "--list" in words else ("read", *words[2:])
    if words[1:2] == ("install.py",):
        return words[2:] if words[2:3] == ("new",) else ("install", *words[2:])
    return ()


IN_BLOCKS = list(commands_in(PAGES, IN_BLOCK))
IN_TEXTS = [words for words in commands_in(PAGES, IN_TEXT) if words not in IN_BLOCKS]
OURS = [words for words in map(as_our_command, IN_BLOCKS) if words]


def test_the_pages_are_searched() -> None:
    assert len(IN_BLOCKS) > 80
    assert len(IN_TEXTS) > 20


@pytest.mark.parametrize("words", OURS, ids=" ".join)
def test_a_command_in_a_block_parses_as_it_stands(words: tuple[str, ...]) -> None:
    parser_of(words[0]).parse_args(words[1:])


def test_a_command_in_a_text_is_one_with_options_that_it_has(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wrong = []
    for words in filter(None, map(as_our_command, IN_TEXTS)):
        try:
            if words[0] not in ("COMMAND", "--version", "help"):
                parser_of(words[0]).parse_args(words[1:])
        except KeyError:
            wrong.append(words)
        except SystemExit as error:  # a text may name a command without all that it has to be given
            if error.code and "are required" not in capsys.readouterr().err:
                wrong.append(words)
    assert wrong == []


@pytest.mark.parametrize(
    "words",
    [words for words in IN_BLOCKS + IN_TEXTS if not as_our_command(words) and len(words) > 1],
    ids=" ".join,
)
def test_a_module_or_file_that_python_is_told_to_run_is_there_with_its_options(
    words: tuple[str, ...],
) -> None:
    _, *rest = words
    if rest[0] == "-m":
        found = importlib.util.find_spec(rest[1])
        assert found
        if rest[1].startswith("bench"):
            module = f"{rest[1]}.__main__" if found.submodule_search_locations else rest[1]
            command.parser_of(importlib.import_module(module).main).parse_args(rest[2:])
    missing = [
        word
        for word in rest
        if re.fullmatch(r"(tests|scripts)/[\w/]+\.py", word) and not (ROOT / word).exists()
    ]
    assert missing == []


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two sessions and an error; it is the process's, and has what the pages name."""
    user = StoreUser(tmp_path)
    user.session(
        "discord", *exchange("which cherry blossom spots near the kyoto temples?", "Maruyama Park.")
    )
    user.session(
        "diary", *exchange("Cannot find module: ECONNREFUSED 127.0.0.1:5432", "Start the database.")
    )
    for name in list(os.environ):
        if name.startswith(("CLAUDE", "SESSION_MEMORY", "ANTHROPIC")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_neither_serves_nor_installs_runs(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = []
    for words in OURS:
        if words[0] not in NOT_RUN and "--watch" not in words:
            code = main([*words])
            said = capsys.readouterr()
            if (
                code not in (0, 1)
                or (code == 1 and not said.err and not said.out)
                or "Traceback" in said.err
            ):
                wrong.append((words, code, said.err))
    assert wrong == []
