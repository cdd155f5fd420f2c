"""`session-memory archive`, as somebody types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hooks_scene import PlainUser
from own_process import plain_environment, run_here
from records import NamedHome, PiSession, exchange, write

from session_memory.sessions.settings.homes import private_beside


def archive(*arguments, home):
    return run_here(["archive", *map(str, arguments)], plain_environment(home), home)


@pytest.fixture
def plain(tmp_path):
    user = PlainUser(tmp_path)
    user.session(*exchange("plan a trip", "Gladly."))
    user.session(*exchange("water the garden", "Done."))
    return user


def test_one_session_is_kept_by_its_name(plain, tmp_path):
    done = archive("plan", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [
        path.name.partition("-plan")[1:] for path in (plain.place / "conversations").glob("*.md")
    ] == [("-plan", "-a-trip.md")]
    assert done.stdout.endswith("1 conversation kept.\n")


def test_all_sessions_are_kept_and_the_progress_is_shown(plain, tmp_path):
    done = archive("--all", home=tmp_path)
    assert done.stdout.endswith("2 conversations kept.\n")
    assert "1/2 " in done.stderr
    assert "2/2 " in done.stderr
    assert len(list((plain.place / "conversations").glob("*.md"))) == 2


def test_the_result_is_there_for_programs(plain, tmp_path):
    done = archive("--all", "--json", home=tmp_path)
    sessions = json.loads(done.stdout)["sessions"]
    assert sorted(Path(one["archive"]).name[11:] for one in sessions) == [
        "plan-a-trip.md",
        "water-the-garden.md",
    ]


def test_an_agent_home_keeps_the_sessions_of_all_its_runtimes(tmp_path):
    home = NamedHome(tmp_path / "agent")
    path = home.session("main", *exchange("plan a trip", "Gladly."))
    claude_dir = tmp_path / ".claude" / "projects" / "-somewhere"
    claude_dir.mkdir(parents=True)
    path.rename(claude_dir / path.name)
    pi = PiSession()
    pi.exchange("water the garden", "Done.")
    write(
        home.root / ".session-memory" / "pi-sessions" / "discord" / f"2026_{pi.id}.jsonl",
        *pi.records,
    )
    done = archive("--all", "--home", home.root, home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name[11:] for path in (home.root / "conversations").glob("*.md")) == [
        "plan-a-trip.md",
        "water-the-garden.md",
    ]


def test_without_a_session_it_says_what_to_do(tmp_path):
    done = archive(home=tmp_path)
    assert done.returncode == 2
    assert "--all" in done.stderr


def test_what_cannot_be_kept_is_said_and_the_rest_is_kept(plain, tmp_path):
    (broken,) = [path for path in plain.project_dir.glob("*.jsonl") if "plan" in path.read_text()]
    (plain.place / "conversations" / f".{broken.stem}.tmp.body").mkdir(parents=True)
    done = archive("--all", home=tmp_path)
    assert done.returncode == 1
    assert "1 conversation kept; 1 could not be kept." in done.stdout


def test_the_error_of_a_hidden_session_does_not_name_it(plain, tmp_path):
    (broken,) = [path for path in plain.project_dir.glob("*.jsonl") if "plan" in path.read_text()]
    plain.config("sessions: {plan*: {ignore: true}}\n")
    folder = Path(private_beside(str(plain.place / "conversations")))
    (folder / f".{broken.stem}.tmp.body").mkdir(parents=True)
    outputs = [archive("--all", *words, home=tmp_path) for words in ([], ["--json"])]
    for done in outputs:
        assert done.returncode == 1
        assert "a hidden session" in done.stdout + done.stderr
        assert "plan" not in done.stdout + done.stderr
        assert broken.stem not in done.stdout + done.stderr
