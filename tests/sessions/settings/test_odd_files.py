"""A config.yaml that is not settings is refused at once, with its line, and hides every session."""

from __future__ import annotations

import time

import pytest
from hooks_scene import PlainUser
from odd_files import NO_FILES
from own_process import plain_environment, run_here
from records import exchange

from session_memory.sessions.settings.check import FileCheck

BOMB = "a: &a [x, x]\n" + "".join(
    f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi")
)
CONTENTS = {
    "an alias bomb": (BOMB, ":2: aliases"),
    "a recursive one": ("a: &a\n  - *a\n", ":2: aliases"),
    "deep brackets": ("scope: all\na: " + "[" * 30_000, ":2: it is nested too deeply"),
    "deep braces": ("a: " + "{a: " * 15_000, ":1: it is nested too deeply"),
    "deep indentation": (
        "".join(" " * n + "a:\n" for n in range(300)),
        ":20: it is nested too deeply",
    ),
    "not UTF-8": (b"scope: all\nsessions: {caf\xe9: {ignore: true}}\n", ":2: it is not UTF-8"),
    "UTF-16": ("scope: all\n".encode("utf-16"), ":1: it is not UTF-8"),
    "a control character": ("scope: all\na: \x01\n", ":2: "),
    "half of a surrogate pair": (
        'scope: all\nmemory: {watchPath: "/\\ud800"}\n',
        ":2: it contains a character",
    ),
    "NUL": ('scope: all\nmemory: {watchPath: "/\\0"}\n', ":2: it contains a character"),
    "20 MB": ("a: b\n" * 4_000_000, ": more than 64 KB"),
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_odd_content_is_refused_at_once_with_its_line(tmp_path, kind):
    content, where = CONTENTS[kind]
    path = tmp_path / "config.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    FileCheck(str(path))  # loads PyYAML
    began = time.process_time()
    check = FileCheck(str(path))
    assert time.process_time() - began < 0.1
    assert check.faults[0].text.startswith(f"{path}{where}")
    assert check.rules


@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "config.yaml"
    NO_FILES[kind](path)
    began = time.process_time()
    check = FileCheck(str(path))
    assert time.process_time() - began < 0.1
    assert check.faults
    assert check.rules


@pytest.mark.parametrize("number", ["0x" + "f" * 60_000, "9" * 60_000, "1" + ":59" * 3000])
def test_a_number_beyond_all_bounds_costs_its_key_alone(tmp_path, number):
    path = tmp_path / "config.yaml"
    path.write_text(f"scope: all\nmax_characters: {number}\n")
    check = FileCheck(str(path))
    assert [fault.key for fault in check.faults] == ["max_characters"]
    assert check.values["scope"] == "all"


COMMANDS = [
    ("config",),
    ("config", "scope"),
    ("config", "scope", "all"),
    ("search", "hello"),
    ("doctor",),
]
IN_ALL_COMMANDS = ("an alias bomb", "zeros")  # the others in one


def put(path, kind):
    path.parent.mkdir(exist_ok=True)
    if kind in NO_FILES:
        NO_FILES[kind](path)
        return
    content = CONTENTS[kind][0]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize("kind", [*CONTENTS, *NO_FILES])
def test_hook_and_commands_refuse_it_at_once_and_name_it(tmp_path, kind):
    plain = PlainUser(tmp_path)
    plain.session(*exchange("hello", "hi"))
    path = plain.place / "config.yaml"
    put(path, kind)
    assert plain.run() == b""
    environ = plain_environment(tmp_path)
    for words in COMMANDS if kind in IN_ALL_COMMANDS else COMMANDS[:1]:
        began = time.perf_counter()
        done = run_here([*words], environ, tmp_path)
        assert time.perf_counter() - began < 20, words
        said = " ".join((done.stdout + done.stderr).split())
        assert "Traceback" not in said, (words, said)
        assert done.returncode == 1, (words, said)
        where = CONTENTS[kind][1].rpartition(": ")[0] if kind in CONTENTS else ""
        named = "/dev/zero" if (kind, words[-1]) == ("zeros", "all") else f"config.yaml{where}"
        assert named in said, (words, said)
    assert plain.run() == b""
