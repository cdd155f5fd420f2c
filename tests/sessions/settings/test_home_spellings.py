"""HOME in any spelling names one home: prompts, ingest, search and doctor agree. One function asks
for it."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from own_process import ROOT
from records import exchange, write
from source_trees import tree_of
from store_scene import StoreUser

from session_memory.common.errors import SessionMemoryError
from session_memory.common.system.files import expanded, user_dir

SAID = "the harbour is calm"
SPELLINGS = {
    "as it is": "{0}",
    "a slash at its end": "{0}/",
    "two slashes": "/{0}//",
    "slashes within": "{1}//{2}",
    "a dot": "{1}/./{2}/.",
    "two dots": "{0}/../{2}",
    "a link": "{1}/link",
    "a link with a slash": "{1}/link/",
}


def test_one_function_asks_for_home():
    strays = []
    for path in [
        *(ROOT / "session_memory").rglob("*.py"),
        *(ROOT / "hooks").glob("*.py"),
        ROOT / "install.py",
    ]:
        name = path.relative_to(ROOT).as_posix().removeprefix("session_memory/")
        if name in ("common/system/files.py", "hooks/old_python.py") or name.startswith(
            "extras/conformance/"
        ):
            continue
        for node in ast.walk(tree_of(path.read_text())):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            is_get = called.endswith((".get", "getenv")) and any(
                isinstance(value, ast.Constant) and value.value == "HOME" for value in node.args
            )
            is_item = (
                isinstance(node, ast.Subscript)
                and "HOME" in ast.unparse(node.slice).strip("'\"").split("_")[:1]
            )
            if (
                is_get
                or called.endswith("expanduser")
                or called == "Path.home"
                or (is_item and "environ" in ast.unparse(node.value))
            ):
                strays.append(f"{name}:{node.lineno}")
    assert strays == []


@pytest.fixture
def person(tmp_path: Path) -> StoreUser:
    user = StoreUser(tmp_path / "anna")
    (tmp_path / "link").symlink_to(user.home)
    write(
        user.projects / "-srv-agent" / "0000000a-0000-4000-8000-00000000000a.jsonl",
        *exchange("look", SAID),
    )
    return user


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_home_means_the_same(person, spelling):
    home = SPELLINGS[spelling].format(person.home, person.home.parent, person.home.name)
    environ = {"HOME": home}
    assert person.run("ingest", **environ).returncode == 0
    found = person.run("search", "harbour", **environ)
    assert (found.returncode, "**harbour**" in found.stdout) == (0, True), found.stderr
    assert "1 file" in person.run("doctor", "store", **environ).stdout
    assert person.database.exists()
    assert not (person.home / "anna").exists()


def test_a_relative_home_is_refused_by_name_and_nothing_is_written(person):
    before = sorted(person.home.rglob("*"))
    done = person.run_process("ingest", cwd=person.home, HOME="some/home")
    assert done.returncode == 1
    assert 'HOME is "some/home", which is relative' in done.stderr
    assert "set HOME to an absolute path" in done.stderr
    assert "Traceback" not in done.stderr
    hook = person.run_command(
        "python3", "-I", "-S", str(ROOT / "hooks" / "user_prompt_submit.py"), HOME="some/home"
    )
    assert (hook.returncode, hook.stdout) == (0, "")
    assert sorted(person.home.rglob("*")) == before


def test_without_home_the_system_knows_it():
    assert user_dir({}) == os.path.expanduser("~") or "HOME" in os.environ
    assert user_dir({"HOME": "/home/anna/"}) == "/home/anna"
    assert expanded("~/x", {"HOME": "/home//anna/"}) == "/home/anna/x"
    assert expanded("~", {"HOME": "/home/anna"}) == "/home/anna"
    assert expanded("a/~", {"HOME": "/home/anna"}) == "a/~"
    with pytest.raises(SessionMemoryError, match="relative"):
        user_dir({"HOME": "home"})


def test_a_home_that_is_not_utf_8_is_refused_or_used_but_never_crashes(tmp_path):
    home = os.fsencode(tmp_path) + b"/\xff"
    os.makedirs(home)
    done = StoreUser(tmp_path / "x").run_process("ingest", HOME=os.fsdecode(home))
    assert "Traceback" not in done.stderr
