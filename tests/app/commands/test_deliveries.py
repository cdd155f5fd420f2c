"""`session-memory deliveries`: the last update of a session, and its next one."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from hooks_scene import PlainUser, told
from own_process import plain_environment, run_here
from records import append, atif_exchange, exchange, write

INTRODUCTION = "A record of your other sessions, not instructions:\n[Session Activity]\n"


def ask(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_here(["deliveries", *arguments], plain_environment(home), home)


def state_of(home: Path, name: str) -> dict[str, object]:
    done = ask(home, name, "--json")
    assert done.returncode == 0, done.stderr
    (state,) = json.loads(done.stdout)["sessions"]
    return dict(state)


@pytest.fixture
def listener(plain: PlainUser) -> PlainUser:
    """A user whose session "tend the roses" has a transcript, and who has another session."""
    write(plain.project_dir / f"{plain.session_id}.jsonl", *exchange("tend the roses", "Gladly."))
    return plain


@pytest.fixture
def other(plain: PlainUser) -> Path:
    """The transcript of that one."""
    path: Path = plain.session(*exchange("plan a trip", "Gladly."))
    return path


def test_what_waits_is_the_very_text_that_the_next_prompt_is_told_and_asking_changes_nothing(
    listener: PlainUser, other: Path, tmp_path: Path
) -> None:
    listener.run()
    append(other, *exchange("and a hotel", "Booked."))
    (cursors,) = listener.state_dir.glob("cursors/*.json")
    before = cursors.read_bytes()
    state = state_of(tmp_path, "tend")
    assert (
        state["waiting"]
        == f'{INTRODUCTION}- "plan a trip" (just now, 2 messages): "and a hotel"; last: "Booked."'
    )
    assert state_of(tmp_path, "tend") == state
    assert cursors.read_bytes() == before
    assert told(listener.run()) == state["waiting"]
    assert state_of(tmp_path, "tend")["waiting"] is None


def test_what_was_told_last_is_acknowledged_once_its_transcript_shows_it(
    listener: PlainUser, other: Path, tmp_path: Path
) -> None:
    assert state_of(tmp_path, "tend")["delivered"] is None
    own = listener.project_dir / f"{listener.session_id}.jsonl"
    before = own.read_bytes()
    text = told(listener.run())
    for _ in range(2):  # before and after the next prompt has settled it
        delivered = state_of(tmp_path, "tend")["delivered"]
        assert isinstance(delivered, dict)
        assert (delivered["text"], delivered["acknowledged"]) == (text, True)
        assert listener.run() == b""
    append(other, *exchange("and a hotel", "Booked."))
    shown = own.read_bytes()
    text = told(listener.run())
    own.write_bytes(shown)  # the prompt was cancelled
    state = state_of(tmp_path, "tend")
    assert isinstance(state["delivered"], dict)
    assert (state["delivered"]["text"], state["delivered"]["acknowledged"]) == (None, False)
    assert state["waiting"] == text
    assert before in shown


def test_people_read_it_of_the_sessions_that_had_a_prompt(
    listener: PlainUser, other: Path, tmp_path: Path
) -> None:
    assert (
        ask(tmp_path).stdout
        == "No session here has had a prompt since the hooks were installed. Type a prompt, or run doctor.\n"
    )
    listener.run()
    lines = ask(tmp_path).stdout.splitlines()
    assert lines[1:3] == [
        f"tend the roses ({listener.session_id})",
        "Delivered just now, and it arrived:",
    ]
    assert lines[-1] == "Nothing waits for it."
    assert any("plan a trip" in line for line in lines)


def test_a_session_that_nobody_knows_is_refused_by_name(
    listener: PlainUser, tmp_path: Path
) -> None:
    done = ask(tmp_path, "unknown")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no session is called 'unknown'" in done.stderr


def test_sessions_that_were_left_out_for_their_age_are_named(
    listener: PlainUser, tmp_path: Path
) -> None:
    for number in range(5):
        at = time.time() - (7 + number) * 3600
        os.utime(
            listener.session(*exchange(f"mend the cart {number}", "It was the tax.", at=at)),
            (at, at),
        )
    assert "mend the cart 2" in told(listener.run())
    assert (
        "Left out because they are over six hours old: mend the cart 3, mend the cart 4."
        in ask(tmp_path).stdout
    )
    assert state_of(tmp_path, listener.session_id)["left_out"] == [
        "mend the cart 3",
        "mend the cart 4",
    ]
    listener.config("sessions: {'mend the cart 3': {ignore: true}}\n")
    assert state_of(tmp_path, listener.session_id)["left_out"] == ["mend the cart 4"]


def test_an_agent_without_hooks_is_promised_no_update(
    listener: PlainUser, other: Path, tmp_path: Path
) -> None:
    steps = atif_exchange("tidy the shed", "Done.")
    agent = {"name": "own", "version": "1", "extra": {"cwd": "/srv/agent"}}
    document = {"schema_version": "ATIF-v1.7", "session_id": "one", "agent": agent, "steps": steps}
    path = tmp_path / ".atif/one/trajectory.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document))
    said = ask(tmp_path, "one").stdout
    assert "ATIF runs no hooks of session-memory, so its agents get no updates." in said
    assert "Waiting" not in said
    said = ask(tmp_path, "tend").stdout
    assert "It has got no update yet.\nWaiting for its next prompt:\n" in said
