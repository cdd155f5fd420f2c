"""All output passes one place, which lets only plain characters and our styles through."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
from pathlib import Path

import pytest
from own_process import ROOT
from source_trees import tree_of

from session_memory.common.system.plain_output import PlainOutput, painted, plain_text
from session_memory.common.system.terminal import Result, Terminal, exit_code

PACKAGE = ROOT / "session_memory"
# The two that are that place, three that answer a program in its protocol, and one that sets the
# streams' encoding.
PRINTING = {
    "common/system/utf8_mode.py",
    "common/system/plain_output.py",
    "common/system/entry_points.py",  # its own program: a JSON answer for another interpreter
    "common/system/terminal.py",
    "awareness/events/main.py",
    "app/install/plugin_start.py",
    "app/tools/_stdio_server.py",
}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def uses_of_streams(tree: ast.Module) -> list[int]:
    """The lines that print, ask or name a stream of the process."""
    found = []
    for node in ast.walk(tree):
        is_call = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("print", "input")
        )
        is_stream = (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "sys"
        )
        if is_call or (is_stream and node.attr in STREAMS):
            found.append(node.lineno)
    return found


def test_no_other_module_prints_or_names_a_stream() -> None:
    others = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in PRINTING and (lines := uses_of_streams(tree_of(path.read_text()))):
            others[name] = lines
    assert not others


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("\x1b]0;title\x07a", "a"),
        ("a\rb\r\nc\x85d\u2028e\vf", "a b\nc d e f"),
        ("\ud800\u202e\u200b\x00x", "\ufffdx"),
        ("plain\n  lines", "plain\n  lines"),
        ("schön 🧵 日本", "schön 🧵 日本"),
    ],
)
def test_a_text_is_printed_as_plain_characters_on_its_own_lines(text: str, shown: str) -> None:
    assert plain_text(text) == shown


def test_our_style_is_kept_and_one_of_the_text_is_not() -> None:
    assert plain_text(painted("red", "a\x1b[32mb") + "\x1b[1m") == "\x1b[31mab\x1b[0m"
    screen = Screen()
    terminal = Terminal({"TERM": "xterm"}, out=screen)
    terminal.line(terminal.paint("bold", "a") + "\x1b[1mb")
    assert screen.getvalue() == "\x1b[1ma\x1b[0mb\n"


def test_a_pipe_gets_no_style() -> None:
    pipe = io.StringIO()
    terminal = Terminal({"TERM": "xterm"}, out=pipe)
    terminal.line(terminal.paint("bold", "a"))
    assert pipe.getvalue() == "a\n"


def test_a_verbatim_text_stays_as_it_is_in_a_pipe_and_not_on_a_terminal() -> None:
    text = "a\x1b[31m\tb\n"
    pipe, screen = io.TextIOWrapper(io.BytesIO(), "latin-1"), Screen()
    for stream in (pipe, screen):
        Terminal({}, out=stream).verbatim(f"{text}日")
    pipe.flush()
    assert pipe.buffer.getvalue() == f"{text}日".encode()
    assert screen.getvalue() == "a b\n日"


def test_json_escapes_what_is_not_plain_and_loses_nothing() -> None:
    import json

    value = {"path": "a\x9b31m\u202e\U000e0041\n\ud800"}

    class Path(Result):
        verbatim = ("path",)

        def as_json(self) -> dict[str, str]:
            return value

    pipe = io.StringIO()
    Terminal({}, is_json=True, out=pipe).show(Path())
    assert plain_text(pipe.getvalue()) == pipe.getvalue()
    assert json.loads(pipe.getvalue()) == value


def test_a_traceback_and_an_error_of_an_argument_are_as_plain(tmp_path: Path) -> None:
    code = "from session_memory.common.system.terminal import exit_code\ndef f(): raise ValueError('a\\x1b[31mb')\nexit_code(f)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr.endswith("ValueError: ab\n")
    code = "from session_memory.cli import main\nmain(['costs', '--a\\x1b[31mb'])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "unrecognized arguments: --ab" in done.stderr
    assert "\x1b" not in done.stderr


def test_the_streams_are_the_callers_again_after_a_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = sys.stdout, sys.stderr
    assert exit_code(lambda: 0) == 0
    assert (sys.stdout, sys.stderr) == before
    assert not isinstance(sys.stdout, PlainOutput)
