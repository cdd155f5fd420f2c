"""`session-memory status`: upkeep's work and its cost, pending work, errors, and the places of data."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from records import append, exchange
from store_scene import ROOT, StoreUser

from session_memory.app.commands.status import check_status, show_overview
from session_memory.app.upkeep.runner import do_upkeep
from session_memory.common.system import files
from session_memory.common.text.timestamps import now_milliseconds
from session_memory.history.store.sqlite.queue import StoredQueue
from session_memory.history.store.values import Usage


@pytest.fixture
def machine(tmp_path: Path) -> StoreUser:
    """A user with one finished conversation."""
    machine = StoreUser(tmp_path)
    machine.session(
        "one",
        *(record for turn in range(3) for record in exchange(f"Roses {turn}?", "Yes.", at=1e9)),
    )
    return machine


def upkeep(machine: StoreUser) -> None:
    do_upkeep(str(machine.home / ".session-memory"), {"HOME": str(machine.home)})


def items(shown: str) -> dict[str, str]:
    """The texts of the status by their labels."""
    found: dict[str, str] = {}
    label = ""
    for line in shown.splitlines()[2:]:
        label = line[2:14].strip() or label  # a text may go on over lines
        found[label] = f"{found[label]} {line.strip()}" if label in found else line[15:]
    return found


def test_before_anything_was_done_it_says_what_waits_and_makes_nothing(machine: StoreUser) -> None:
    done = machine.run("status")
    shown = items(done.stdout)
    assert done.returncode == 0
    assert shown["upkeep"] == "with the start and end of sessions; it has not run yet"
    assert shown["waits"].startswith("1 file (2 kB): there is no store yet")
    assert shown["went wrong"] == "nothing"
    assert not (machine.home / ".session-memory").exists()


def test_the_status_of_a_file_is_taken_once(
    machine: StoreUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    (transcript,) = (machine.home / ".claude").rglob("*.jsonl")
    for command in (["ingest"], ["archive", "--all"]):
        assert machine.run(*command).returncode == 0
    (archive,) = (machine.home / ".session-memory").rglob("*.md")
    taken: Counter[str] = Counter()

    def counted(take: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def counting(path: str, **options: Any) -> os.stat_result:
            taken[str(path)] += 1
            return take(path, **options)

        return counting

    monkeypatch.setenv("HOME", str(machine.home))
    for name in ("stat", "lstat"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    state = check_status(argparse.Namespace(home=None, json=False))
    assert state.places["transcripts"][1:] == (1, transcript.stat().st_size)
    assert state.places["archives"][1:] == (2, archive.stat().st_size + 8)
    taken.subtract({str(transcript): 1, str(archive): 1})  # by this test
    assert (taken[str(transcript)], taken[str(archive)]) == (1, 1)


def test_where_transcripts_of_several_runtimes_lie_stands_line_by_line(machine: StoreUser) -> None:
    (machine.home / ".pi/agent/sessions").mkdir(parents=True)
    lines = machine.run("status").stdout.splitlines()
    at = next(
        number
        for number, line in enumerate(lines)
        if line.startswith("  transcripts  ~/.claude/projects: 1 file")
    )
    assert lines[at + 1] == f"{'':15}~/.pi/agent/sessions: nothing yet"


def test_it_says_what_the_last_run_did_and_what_is_new_since(machine: StoreUser) -> None:
    upkeep(machine)
    append(machine.projects / "-srv-agent" / "one.jsonl", *exchange("Tulips?", "Yes.", at=2e9))
    shown = items(machine.run("status").stdout)
    assert shown["upkeep"].startswith("with the start and end of sessions; last just now, ")
    assert shown["upkeep"].endswith(" s: 1 file (2 kB), 1 archive, 1 memory")
    assert shown["next"].endswith(" on, when a session starts or ends")
    assert shown["waits"].startswith("1 file (")
    assert shown["store"].startswith("~/.session-memory/store: ")
    assert shown["holds"].startswith("1 transcript, 1 conversation, ")
    found = machine.result("status")
    assert (found["waiting"]["files"], found["waiting"]["conversations"]) == (1, {"extractive": 0})
    assert found["runs"][0]["memories"] == 1
    assert found["places"]["memories"]["files"] > 0


def test_what_went_wrong_is_told_until_a_run_goes_well(machine: StoreUser) -> None:
    machine.config("memories: {strategies: [extractive, nosuch]}\n")
    odd = machine.projects / "-srv-agent" / "odd.jsonl"
    odd.write_bytes('{"type": "user"}\n'.encode("utf-16"))
    upkeep(machine)
    problems = machine.result("status")["problems"]
    assert problems[0].startswith("nosuch: unknown strategy 'nosuch'")
    assert problems[1].startswith(f"{odd}: ")
    state = machine.home / ".session-memory/state/upkeep.json"
    noted = json.loads(state.read_text())
    noted["runs"][0]["problem"] = "the sky fell"
    state.write_text(json.dumps(noted))
    done = machine.run("status")
    assert done.returncode == 1
    assert items(done.stdout)["went wrong"].startswith("just now: the sky fell")


def test_it_adds_up_what_models_have_spent(machine: StoreUser) -> None:
    upkeep(machine)
    queue = StoredQueue(str(machine.database))
    for days, tokens in ((0, 1000), (3, 20_000), (8, 5_000_000)):
        at = now_milliseconds() - days * 24 * 3600 * 1000
        account = queue.accounts.open("summary", 1, Usage(tokens, 0, 0, "haiku"), at, 10**9)
        assert account is not None
        queue.accounts.settle(account, Usage(tokens, 0, 0, "haiku"))
    queue.close()
    assert machine.result("status")["spent"] == {
        "tokens_today": 1000,
        "tokens": 21_000,
        "dollars": 0.021,
        "dollars_today": 0.001,
        "unpriced": [],
    }
    assert (
        items(machine.run("status").stdout)["spent"]
        == "1,000 tokens ($0.00) today, 21,000 ($0.02) in seven days"
    )


def test_without_what_the_store_needs_it_says_that(machine: StoreUser) -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from session_memory.cli import main; sys.exit(main(['status']))"
    done = machine.run_command(sys.executable, "-I", "-S", "-c", code)
    assert (done.returncode, done.stderr) == (0, "")
    assert items(done.stdout)["went wrong"].startswith("apsw is not installed")


def test_a_run_that_is_under_way_is_none_that_went_wrong(machine: StoreUser) -> None:
    upkeep(machine)
    state = machine.home / ".session-memory/state"
    noted = json.loads((state / "upkeep.json").read_text())
    noted["runs"].append({"began": time.time(), "ended": 0.0})
    (state / "upkeep.json").write_text(json.dumps(noted))
    assert machine.result("status", code=1)["problems"] == [
        "just now: it was ended before it had finished"
    ]
    import fcntl

    held = os.open(state / "upkeep.lock", os.O_RDWR)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert machine.result("status")["problems"] == []
    finally:
        os.close(held)


def test_of_a_host_it_says_that_the_host_does_it(machine: StoreUser) -> None:
    host = machine.home / "agents"
    assert machine.run("host", "init", host, "main").returncode == 0
    do_upkeep(str(host), {"HOME": str(machine.home)})
    shown = items(machine.run("status", "--home", host).stdout)
    assert shown["upkeep"].startswith("by the host, while it runs; last just now, ")
    assert shown["next"].endswith(" on, while the host runs")
    assert shown["groups"].startswith("~/agents/groups: ")
    assert "archives" not in shown


def test_the_overview_takes_the_status_of_each_transcript_once(
    machine: StoreUser, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [machine.session(f"old-{number}", *exchange("Roses?", "Yes.")) for number in range(5)]
    for path in paths:
        os.utime(path, (1.7e9, 1.7e9))
    assert machine.run("ingest").returncode == 0
    taken: list[str] = []
    for module, name in ((os, "stat"), (os, "lstat"), (files.os, "stat")):
        monkeypatch.setattr(module, name, _noting(getattr(module, name), taken))
    monkeypatch.setattr(os, "environ", {"HOME": str(machine.home)})
    assert show_overview() == 0
    assert "6 conversations in the store" in capsys.readouterr().out
    assert [taken.count(str(path)) for path in paths] == [1] * len(paths)


def _noting(take: Callable[..., os.stat_result], taken: list[str]) -> Callable[..., os.stat_result]:
    def take_and_note(path: object, **options: bool) -> os.stat_result:
        taken.append(str(path))
        return take(path, **options)

    return take_and_note
