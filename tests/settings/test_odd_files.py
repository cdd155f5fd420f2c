"""A config.yaml that is anything but settings: it is refused at once, with its line, and hides every session meanwhile."""

from __future__ import annotations

import os
import time

import pytest
from hooks_scene import PlainUser
from records import exchange

from session_memory.settings.check import FileCheck

BOMB = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi"))
CONTENTS = {
    "an alias bomb": (BOMB, ":2: aliases"),
    "a recursive one": ("a: &a\n  - *a\n", ":2: aliases"),
    "deep brackets": ("scope: all\na: " + "[" * 30_000, ":2: it is nested too deeply"),
    "deep braces": ("a: " + "{a: " * 15_000, ":1: it is nested too deeply"),
    "deep indentation": ("".join(" " * n + "a:\n" for n in range(300)), ":20: it is nested too deeply"),
    "not UTF-8": (b"scope: all\nsessions: {caf\xe9: {ignore: true}}\n", ":2: it is not UTF-8"),
    "UTF-16": ("scope: all\n".encode("utf-16"), ":1: it is not UTF-8"),
    "a control character": ("scope: all\na: \x01\n", ":2: "),
    "half of a surrogate pair": ('scope: all\nmemory: {watchPath: "/\\ud800"}\n', ":2: a character"),
    "NUL": ('scope: all\nmemory: {watchPath: "/\\0"}\n', ":2: a character"),
    "20 MB": ("a: b\n" * 4_000_000, ": more than 64 KB"),
}


def fifo(path):
    os.mkfifo(path)


def directory(path):
    path.mkdir()


def link_loop(path):
    path.symlink_to(path)


def zeros(path):
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", CONTENTS)
def test_odd_content_is_refused_at_once_with_its_line(tmp_path, kind):
    content, where = CONTENTS[kind]
    path = tmp_path / "config.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    FileCheck(str(path))  # loads PyYAML
    began = time.perf_counter()
    check = FileCheck(str(path))
    assert time.perf_counter() - began < 0.1
    assert check.faults[0].text.startswith(f"{path}{where}")
    assert check.rules


@pytest.mark.parametrize("make", [fifo, directory, link_loop, zeros], ids=lambda one: one.__name__)
def test_what_is_no_file_is_refused_at_once(tmp_path, make):
    path = tmp_path / "config.yaml"
    make(path)
    began = time.perf_counter()
    check = FileCheck(str(path))
    assert time.perf_counter() - began < 0.1
    assert check.faults
    assert check.rules


@pytest.mark.parametrize("number", ["0x" + "f" * 60_000, "9" * 60_000, "1" + ":59" * 3000])
def test_a_number_beyond_all_bounds_costs_its_key_alone(tmp_path, number):
    path = tmp_path / "config.yaml"
    path.write_text(f"scope: all\nmax_characters: {number}\n")
    check = FileCheck(str(path))
    assert [fault.key for fault in check.faults] == ["max_characters"]
    assert check.values["scope"] == "all"


@pytest.mark.parametrize("make", [fifo, directory, link_loop, zeros], ids=lambda one: one.__name__)
def test_the_hook_goes_on_and_tells_of_no_session(tmp_path, make):
    plain = PlainUser(tmp_path)
    plain.session(*exchange("hello", "hi"))
    plain.place.mkdir(exist_ok=True)
    make(plain.place / "config.yaml")
    assert plain.run() == b""
