"""Our modules that an installed program loads, by `sys.modules` at its end.

A prompt, an edit and a status line load them from the bundle, and the snapshot has each with its
origin. Renew it with --snapshot-update, and explain an additional module in the commit.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from git_scene import GIT_ENVIRONMENT
from hooks_scene import ROOT, PlainUser
from records import append, assistant, exchange
from syrupy.assertion import SnapshotAssertion
from tool_call_scene import Project

# Runs a program as its interpreter would, and prints our modules when it ends.
WATCHED = """
import posix, sys
script, sys.argv = sys.argv[1], sys.argv[1:]
sys.path.insert(0, "")
end = posix._exit

def note(status=0):
    for name in sorted(sys.modules):
        if name.partition(".")[0] == "session_memory":
            loader = type(getattr(sys.modules[name], "__loader__", None)).__name__
            sys.stderr.write(f"LOADED {name} {loader}\\n")
    sys.stdout.flush()
    end(status)

posix._exit = note
try:
    exec(compile(open(script).read(), script, "exec"), {"__file__": script, "__name__": "__main__"})
except SystemExit as error:
    note(error.code or 0)
note()
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program as an install leaves it: a copy with a bundle."""
    app = tmp_path_factory.mktemp("installed") / "app"
    for part in ("session_memory", "hooks", "scripts"):
        shutil.copytree(ROOT / part, app / part, ignore=shutil.ignore_patterns("__pycache__"))
    deadline = app / "session_memory/common/system/deadline.py"
    # a hook that is late, on a busy machine, loads other modules
    short, long = "\nHOOK_SECONDS = 1.0\n", "\nHOOK_SECONDS = 60.0\n"
    assert short in deadline.read_text()
    deadline.write_text(deadline.read_text().replace(short, long))
    code = "import sys; sys.path.insert(0, sys.argv[1]); from session_memory.awareness.events.bundle import write_bundle"
    command = [sys.executable, "-I", "-S", "-c", f"{code}; write_bundle(sys.argv[1])", str(app)]
    subprocess.run(command, check=True)
    return app


def loaded(
    app: Path, plain: PlainUser, script: str, **fields: object
) -> tuple[str, list[str], list[str]]:
    """Return what a hook prints, and the modules of ours that it loads: all, and those that are not
    from the bundle."""
    command = [sys.executable, "-I", "-S", "-c", WATCHED, str(app / script)]
    event = json.dumps(plain.event(**fields)).encode()
    environ = {"HOME": str(plain.root), "CLAUDE_PID": "4711"}
    done = subprocess.run(command, input=event, capture_output=True, env=environ, check=True)
    lines = [
        line.split()[1:] for line in done.stderr.decode().splitlines() if line.startswith("LOADED ")
    ]
    names = [
        name.removeprefix("session_memory").lstrip(".") or "session_memory" for name, _ in lines
    ]
    outside = [name for name, loader in lines if loader != "BundleFinder"]
    return done.stdout.decode(), names, outside


def at_rest(plain: PlainUser) -> Path:
    path = plain.session(*exchange("hello", "hi"))
    an_hour_ago = time.time() - 3600  # a fresh file would be read once more
    os.utime(path, (an_hour_ago, an_hour_ago))
    for directory in (plain.project_dir, plain.project_dir.parent):
        os.utime(directory, (1, 1))
    for _ in range(3):
        plain.run()
    return path


def test_a_prompt_with_nothing_new(
    app: Path, plain: PlainUser, snapshot: SnapshotAssertion
) -> None:
    at_rest(plain)
    output, names, outside = loaded(app, plain, "hooks/user_prompt_submit.py")
    assert (output, outside) == ("", [])
    assert names == snapshot


def test_a_prompt_with_news(app: Path, plain: PlainUser, snapshot: SnapshotAssertion) -> None:
    append(at_rest(plain), *exchange("how is it going?", "Fine."))
    output, names, outside = loaded(app, plain, "hooks/user_prompt_submit.py")
    assert "how is it going?" in output
    assert outside == []
    assert names == snapshot


def test_a_prompt_that_redacts_a_secret_does_not_import_re(app: Path, plain: PlainUser) -> None:
    token = "ghp_" + "aB3dE6gH9j" * 4
    append(at_rest(plain), *exchange(f"log in with password: hunter2x and {token}", "Fine."))
    hook = str(app / "hooks/user_prompt_submit.py")
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", hook],
        input=json.dumps(plain.event()).encode(),
        capture_output=True,
        env={"HOME": str(plain.root)},
        check=True,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert "[redacted:" in done.stdout.decode()
    assert not [secret for secret in ("hunter2x", token) if secret in done.stdout.decode()]
    assert "_json" in imported
    assert not {"re", "enum", "functools"} & imported


def test_a_prompt_that_redacts_a_secret_loads_no_lists_of_words(
    app: Path, plain: PlainUser
) -> None:
    append(at_rest(plain), *exchange("log in with password: hunter2x", "Fine."))
    output, names, outside = loaded(app, plain, "hooks/user_prompt_submit.py")
    assert "[redacted:" in output
    assert "hunter2x" not in output
    assert "common.text.secrets.scan" in names
    assert not {"common.text.words", "awareness.activity._commands"} & {*names}
    assert outside == []


def test_a_prompt_with_a_collision_and_another_session_s_git_command(
    app: Path, tmp_path: Path
) -> None:
    project = Project(tmp_path)
    own = {"session_id": project.user.session_id, "cwd": project.cwd}
    project.edited(transcript=project.own)
    project.user.run(cwd=project.cwd)
    stash = "git stash -q; git stash drop -q"
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": stash}}
    project.edited()
    append(project.other, assistant(call, cwd=project.cwd))
    subprocess.run(["sh", "-c", stash], cwd=project.cwd, env=GIT_ENVIRONMENT, check=True)
    output, names, outside = loaded(app, project.user, "hooks/user_prompt_submit.py", **own)
    assert "! " in output
    assert "awareness.activity.collisions.ref_notes" in names
    assert "awareness.activity.collisions._losses" in names
    assert outside == []


def test_an_edit(app: Path, plain: PlainUser, snapshot: SnapshotAssertion) -> None:
    at_rest(plain)
    call = {"tool_name": "Edit", "tool_input": {"file_path": "/srv/agent/app"}}
    output, names, outside = loaded(app, plain, "hooks/pre_tool_use.py", **call)
    assert (output, outside) == ("", [])
    assert names == snapshot


def test_a_status_line(app: Path, plain: PlainUser, snapshot: SnapshotAssertion) -> None:
    plain.config("statusline: true\n")
    at_rest(plain)
    _, names, outside = loaded(app, plain, "hooks/status_line.py")
    assert outside == []
    assert names == snapshot


def test_a_search(app: Path, plain: PlainUser, snapshot: SnapshotAssertion) -> None:
    at_rest(plain)
    environ = {"HOME": str(plain.root), "CLAUDE_CONFIG_DIR": str(plain.project_dir.parents[1])}
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from session_memory.cli import main; "
    code += "code = main(['search', 'hello']); print(*sorted(sys.modules), file=sys.stderr); sys.exit(code)"
    command = [sys.executable, "-I", "-c", code, str(app)]
    for _ in range(2):  # the first takes the session into the store
        done = subprocess.run(
            command, capture_output=True, text=True, env=environ, cwd=plain.root, check=False
        )
    assert "hello" in done.stdout, done.stdout + done.stderr
    names = [name for name in done.stderr.split() if name.startswith("session_memory.")]
    # whether an id or a temporary directory needs a second look for secrets is chance
    names = [name for name in names if ".secrets." not in name]
    assert [name.removeprefix("session_memory.") for name in names] == snapshot


def above(names: list[str], *layers: str) -> list[str]:
    """Return the modules that belong to one of these layers."""
    return [name for name in names if name.partition(".")[0] in layers]


@pytest.mark.parametrize(
    "script",
    [
        "session_start",
        "user_prompt_submit",
        "pre_tool_use",
        "post_tool_use_failure",
        "subagent_start",
        "status_line",
        "pre_compact",
        "session_end",
        "session_waits",
    ],
)
def test_no_hook_loads_memories_commands_or_extras(
    app: Path, plain: PlainUser, script: str
) -> None:
    append(at_rest(plain), *exchange("how is it going?", "Fine."))
    _, names, _ = loaded(app, plain, f"hooks/{script}.py", prompt="Hi", trigger="manual")
    assert "awareness.events" in names
    assert above(names, "memory", "app", "extras") == []


COMMAND = """
from session_memory.cli import main

main(sys.argv[1:])
"""
# An ingest and a search as any program makes them that imports `history` alone.
HISTORY = """
import os
from session_memory.history.store.location import find_location
from session_memory.history.store.refresh import refresh, use_store
from session_memory.history.store.values import Filter

location = find_location(None, os.environ)

def search(store, is_rebuilt):
    refresh(store, location, print)
    return store.search("hello", Filter())

assert use_store(location, search, print)
"""


def loaded_by(app: Path, plain: PlainUser, code: str, *words: str) -> list[str]:
    """Return the modules of ours that a program in the person's home loads."""
    environ = {"HOME": str(plain.root), "CLAUDE_CONFIG_DIR": str(plain.project_dir.parents[1])}
    first = "import sys; sys.path.insert(0, sys.argv.pop(1))"
    code = f"{first}\n{code}\nprint(*sorted(sys.modules), file=sys.stderr)"
    command = [sys.executable, "-I", "-c", code, str(app), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environ, cwd=plain.root, check=True
    )
    return [name.removeprefix("session_memory.") for name in done.stderr.split()]


def test_a_search_loads_neither_memories_nor_an_extra(app: Path, plain: PlainUser) -> None:
    at_rest(plain)
    names = loaded_by(app, plain, COMMAND, "search", "hello")
    assert "history.search.search" in names
    assert above(names, "memory", "extras") == []


def test_an_ingest_loads_no_extra(app: Path, plain: PlainUser) -> None:
    at_rest(plain)
    names = loaded_by(app, plain, COMMAND, "ingest")
    assert "history.store.ingest.ingestion" in names
    assert "memory.upkeep" in names, "the command moves memories that rules hide"
    assert above(names, "extras") == []


def test_the_history_loads_no_package_above_it(app: Path, plain: PlainUser) -> None:
    at_rest(plain)
    names = loaded_by(app, plain, HISTORY)
    assert {"history.store.ingest.ingestion", "history.search.search"} <= {*names}
    assert above(names, "memory", "app", "extras") == []
