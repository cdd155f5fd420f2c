"""The real runtimes: a session that was deleted and restored resumes as if it had never been
away."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from clients.everyone import CLIENTS, User
from clients.npm import NpmPlace
from kept_scene import KeptUser
from runtimes_scene import SHELL

from session_memory.sessions.runtimes.table import all_runtimes

NOT_PUT_BACK = [each.name for each in all_runtimes() if each.backup.CANNOT_PUT_BACK]
# What differs between two runs of the same: times, and ids made anew for each request.
_NEW_EACH_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|[+-][\d:]+)?|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
)


def messages(user: User, prompt: str, *session: str) -> list[Any]:
    """The list of messages in the longest request that a prompt leads to, without what differs
    between two runs."""
    before = len(user.model.requests)
    user.program.say(prompt, *session)
    with user.model.lock:
        sent = [request.body for request in user.model.requests[before:]]
    body = max(
        (one for one in sent if prompt in json.dumps(one)), key=lambda one: len(json.dumps(one))
    )
    said = next(body[key] for key in ("messages", "input", "contents") if key in body)
    return list(json.loads(_NEW_EACH_TIME.sub("...", json.dumps(said))))


def delete(user: User, session_id: str, config_dir: str) -> None:
    """Delete a session: OpenCode and Kilo do it themselves, of others its files go."""
    if user.name in ("opencode", "kilo"):
        user.program.execute("session", "delete", session_id)  # type: ignore[attr-defined]
        return
    (runtime,) = (one for one in all_runtimes() if one.name == user.name)
    for one in runtime.backup.sessions(config_dir):
        for file in one.files:
            os.unlink(file.source)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CLIENTS if name not in NOT_PUT_BACK])
def test_a_session_that_was_deleted_and_restored_goes_on_as_if_it_had_never_been_away(
    name: str, tmp_path: Path, npm_place: NpmPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = CLIENTS[name]
    with client.model() as model:
        program = client.program(tmp_path, npm_place(client.package), model)
        user = User(name, program, model)
        user.orders("first question here", user.call(SHELL, "echo the first look"))
        user.ask("first question here")
        home = Path(program.environment["HOME"])
        person = KeptUser(home, monkeypatch)
        assert person.keep().problems == []
        (session,) = [one for one in person.sessions() if one.runtime == name]
        resumed = [word.format(session.session_id) for word in program.BY_ID]
        shutil.copytree(home, tmp_path / "as it was", symlinks=True)
        expected = messages(user, "and once more", *resumed)
        assert all(
            text in json.dumps(expected) for text in ("first question here", "the first look")
        )
        shutil.rmtree(home)
        os.rename(tmp_path / "as it was", home)
        before = sorted(person.stored())
        delete(user, session.session_id, session.config_dir)
        person.keep()
        program_dir = str(Path(program.command[0]).parent) if hasattr(program, "command") else ""
        environment = {
            **program.environment,
            "PATH": f"{program_dir}:{program.environment['PATH']}",
        }
        done = person.run("restore", session.session_id, cwd=program.project, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        person.keep()
        assert sorted(person.stored()) == before
        assert messages(user, "and once more", *resumed) == expected


@pytest.mark.slow
def test_an_old_chat_that_was_restored_survives_the_next_starts_of_gemini(
    tmp_path: Path, npm_place: NpmPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = CLIENTS["gemini"]
    with client.model() as model:
        program = client.program(tmp_path, npm_place(client.package), model)
        program.say("an old question")
        (chat,) = Path(program.environment["HOME"]).rglob("session-*.jsonl")
        chat.write_bytes(re.sub(rb'"20\d\d-(\d\d-\d\dT)', rb'"2024-\1', chat.read_bytes()))
        old = chat.read_bytes()
        person = KeptUser(Path(program.environment["HOME"]), monkeypatch)
        person.keep()
        program.say("a new question")
        wait_until_gone(chat)
        (session,) = [one for one in person.sessions() if old.find(one.session_id.encode()) >= 0]
        assert person.run("restore", session.session_id, **program.environment).returncode == 0
        assert chat.read_bytes().startswith(old)
        program.say("another question")
        program.say("one more question")
        assert chat.exists()


def wait_until_gone(path: Path) -> None:
    """Wait until Gemini, which deletes in the background, has deleted a chat."""
    deadline = time.monotonic() + 30
    while path.exists():
        assert time.monotonic() < deadline, "it was not deleted"
        time.sleep(0.1)
