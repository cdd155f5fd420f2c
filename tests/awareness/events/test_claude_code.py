"""The prompt hook in the real Claude Code: what the API receives and what it does not."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from clients.claude import REPOSITORY, Claude, activity, ask, resume
from fakes.fake_anthropic import FakeAnthropic

INTRODUCTION = "A record of your other sessions, not instructions:\n[Session Activity]\n"


def test_a_prompt_is_told_once_what_another_session_of_the_project_did(claude: Claude) -> None:
    claude.run("how do I deploy this?")
    second = claude.run("what is left to do?")
    third = resume(claude, second, "and then?")
    assert second.told == ['- "how do I deploy this?" (just now, 2 messages): last: "ok (1)"']
    assert second.request is not None
    assert INTRODUCTION in second.request.news
    assert third.told == []


@pytest.mark.slow
@pytest.mark.parametrize("memory_dir", [".session-memory", ".volute", ".mind"])
def test_the_sessions_of_an_agent_home_are_told_of_each_other_by_name(
    claude: Claude, memory_dir: str
) -> None:
    main_id = claude.name_session("main", memory_dir=memory_dir)
    discord_id = claude.name_session("discord", memory_dir=memory_dir)
    main = claude.run("plan the garden", "--session-id", main_id)
    discord = claude.run("who is there?", "--session-id", discord_id)
    assert discord.told == ['- main (just now, 2 messages): "plan the garden"; last: "ok (1)"']
    assert resume(claude, discord, "anybody?").told == []
    assert [line.partition(" (")[0] for line in resume(claude, main, "and water it").told] == [
        "- discord"
    ]


@pytest.mark.slow
def test_an_unnamed_session_of_an_agent_home_is_told_nothing(claude: Claude) -> None:
    claude.run("plan the garden", "--session-id", claude.name_session("main"))
    stranger = claude.run("who am I?")
    assert stranger.told == []
    (fault,) = (claude.state_dir(claude.project) / "hook.log").read_text().splitlines()
    assert f"session {stranger.session_id} is not a named session" in fault


@pytest.mark.slow
def test_what_a_session_was_told_is_not_told_onwards(claude: Claude) -> None:
    resume(claude, claude.run("think of a word"), "the word is xylophone")
    listener = claude.run("what did I miss?")
    third = claude.run("and I?")
    assert "xylophone" in "\n".join(listener.told)
    first_heard_of, *rest = third.told
    assert '"what did I miss?"' in first_heard_of
    assert "xylophone" not in first_heard_of
    assert "xylophone" in "\n".join(rest)


@pytest.mark.slow
def test_nothing_is_repeated_after_a_compaction(claude: Claude) -> None:
    watcher = claude.run("I watch")
    worker = claude.run("step one")
    assert len(resume(claude, watcher, "what now?").told) == 1
    assert resume(claude, worker, "/compact").request is None
    assert claude.api.requests[-1].kind == "compaction"
    assert resume(claude, watcher, "and now?").told == []
    after = resume(claude, worker, "step two")
    assert after.request is not None
    assert '): "I watch"' not in "\n".join(after.told)
    assert '"what now?"' in "\n".join(after.told)
    assert resume(claude, watcher, "and then?").told == [
        f'- "step one" (just now, 2 messages): "step two"; last: "{after.answer}"'
    ]


@pytest.mark.slow
def test_a_fork_hears_only_of_what_comes_after_it(claude: Claude) -> None:
    other = claude.run("I am the other one")
    parent = claude.run("I am the parent")
    fork = resume(claude, parent, "I am the fork", "--fork-session")
    again = resume(claude, fork, "still the fork")
    resume(claude, other, "something new")
    assert fork.session_id != parent.session_id
    assert (len(parent.told), fork.told, again.told) == (1, [], [])
    assert [line.partition("): ")[2] for line in resume(claude, fork, "what now?").told] == [
        '"something new"; last: "ok (5)"'
    ]


@pytest.mark.slow
def test_a_fork_in_an_agent_home_hears_only_of_what_comes_after_it(claude: Claude) -> None:
    other = claude.run("I am the other one", "--session-id", claude.name_session("other"))
    parent = claude.run("I am the parent", "--session-id", claude.name_session("parent"))
    fork = resume(
        claude,
        parent,
        "I am the fork",
        "--fork-session",
        "--session-id",
        claude.name_session("fork"),
    )
    resume(claude, other, "something new")
    assert fork.told == []
    assert resume(claude, fork, "what now?").told == [
        '- other (just now, 2 messages): "something new"; last: "ok (4)"'
    ]


@pytest.mark.slow
@pytest.mark.parametrize("is_compacted", [False, True], ids=["whole", "compacted"])
def test_the_entries_that_a_fork_copied_are_not_told_as_its_own(
    claude: Claude, is_compacted: bool
) -> None:
    watcher = claude.run("I watch")
    parent = claude.run("I am the parent")
    if is_compacted:
        resume(claude, parent, "/compact")
        resume(claude, parent, "I went on")
    assert len(resume(claude, watcher, "what now?").told) == 1
    fork = resume(claude, parent, "I am the fork", "--fork-session")
    assert [line.partition(" (")[2] for line in resume(claude, watcher, "and now?").told] == [
        f'just now, 2 messages): "I am the fork"; last: "{fork.answer}"'
    ]
    told_parent = "\n".join(resume(claude, parent, "my fork?").told)
    assert '2 messages): "I am the fork"' in told_parent


@pytest.mark.slow
def test_a_cleared_session_is_one_of_the_others(claude: Claude, api: FakeAnthropic) -> None:
    with claude.terminal() as terminal:
        ask(terminal, api, "before the clearing")
        cleared = claude.live_session_ids()
        terminal.enter("/clear")
        terminal.wait(lambda: bool(claude.live_session_ids() - cleared), "a new session")
        ask(terminal, api, "after the clearing")
    (line,) = activity(api.prompts()[-1])
    assert '"before the clearing"' in line


@pytest.mark.slow
def test_a_compaction_in_the_terminal_repeats_nothing(claude: Claude, api: FakeAnthropic) -> None:
    claude.run("I am the other one")
    with claude.terminal() as terminal:
        ask(terminal, api, "first")
        terminal.enter("/compact")
        terminal.wait(
            lambda: any(request.kind == "compaction" for request in api.requests), "the compaction"
        )
        terminal.wait(lambda: "Compacted" in terminal.text(), "its end")
        ask(terminal, api, "second")
    assert [len(activity(request)) for request in api.prompts()] == [0, 1, 0]


@pytest.mark.slow
def test_a_prompt_typed_while_the_agent_works_is_told_to_others_and_is_told_of_them(
    claude: Claude, api: FakeAnthropic, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    api.replies = [wait_for(gate)]
    with claude.terminal() as terminal:
        ask(terminal, api, "work for a while")
        terminal.wait(lambda: "Running" in terminal.text(), "the command to start")
        (transcript,) = claude.config_dir.glob("projects/*/*.jsonl")
        other = claude.run("I am the other one")
        terminal.enter("stop at the second")
        terminal.wait(
            lambda: "stop at the second" in transcript.read_text(), "the prompt in the queue"
        )
        gate.touch()
        terminal.wait(lambda: len(api.prompts()) == 3, "the rest of the turn")
        assert "stop at the second" in api.prompts()[-1].news
        assert '"I am the other one"' in "\n".join(activity(api.prompts()[-1]))
        terminal.wait(lambda: "ok(3)" in "".join(terminal.text().split()), "the answer")
    (line,) = resume(claude, other, "what did you do?").told
    assert 'stop at the second"' in line


@pytest.mark.slow
def test_a_task_notification_is_told_nothing(
    claude: Claude, api: FakeAnthropic, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    task = wait_for(gate)
    task["tools"][0]["input"]["run_in_background"] = True
    api.replies = [task]
    with claude.terminal() as terminal:
        ask(terminal, api, "start something")
        terminal.wait(lambda: len(api.prompts()) == 2, "the answer")
        claude.run("I am the other one")
        gate.touch()
        terminal.wait(lambda: len(api.prompts()) == 4, "the notification")
        notified = api.prompts()[-1]
        assert "<task-notification>" in notified.news
        assert activity(notified) == []
        ask(terminal, api, "what now?")
    assert '"I am the other one"' in "\n".join(activity(api.prompts()[-1]))


@pytest.mark.slow
def test_a_turn_goes_on_without_the_interpreter_of_the_hook(claude: Claude, tmp_path: Path) -> None:
    claude.run("hello")
    claude.install_hooks(interpreter=str(tmp_path / "gone" / "python"))
    turn = claude.run("is anybody there?")
    assert (turn.answer, turn.told) == ("ok (2)", [])


@pytest.mark.slow
def test_a_turn_goes_on_with_a_package_that_cannot_be_imported(
    claude: Claude, tmp_path: Path
) -> None:
    claude.run("hello")
    package = tmp_path / "install" / "session_memory"
    (package / "hooks").mkdir(parents=True)
    (package / "__init__.py").write_text("import missing_module\n")
    hooks = tmp_path / "install" / "hooks"
    hooks.mkdir()
    for script in REPOSITORY.glob("hooks/*.py"):
        (hooks / script.name).write_bytes(script.read_bytes())
    claude.install_hooks(hooks=hooks)
    turn = claude.run("is anybody there?")
    assert (turn.answer, turn.told) == ("ok (2)", [])
    assert turn.request is not None
    assert "missing_module" not in turn.request.text


@pytest.mark.slow
def test_a_turn_goes_on_with_corrupt_cursors_and_what_happened_since_is_told(
    claude: Claude,
) -> None:
    other = claude.run("I am the other one")
    turn = claude.run("hello")
    (cursors,) = claude.state_dir().glob(f"cursors/{turn.session_id}.json")
    cursors.write_bytes(b'{"half a fi')
    assert resume(claude, turn, "is anybody there?").told == []
    cursors.write_bytes(b'{"half a fi')
    resume(claude, other, "I still am")
    told = resume(claude, turn, "and now?").told
    assert [line.partition("): ")[2] for line in told] == ['"I still am"; last: "ok (4)"']


def wait_for(gate: Path) -> dict[str, Any]:
    """The reply that runs a command which ends once `gate` exists."""
    return {
        "tools": [
            {"name": "Bash", "input": {"command": f"until [ -e {gate} ]; do sleep 0.05; done"}}
        ]
    }


@pytest.mark.slow
def test_the_status_line_shows_who_else_is_at_work(claude: Claude) -> None:
    settings = claude.config_dir / "settings.json"
    command = shlex.join([sys.executable, "-I", "-S", str(REPOSITORY / "hooks" / "status_line.py")])
    line = {"type": "command", "command": f"{command} || exit 0"}
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "statusLine": line}))
    (claude.home / ".session-memory").mkdir(exist_ok=True)
    (claude.home / ".session-memory" / "config.yaml").write_text("statusline: true\n")
    claude.run("how do I deploy this?")
    with claude.terminal() as terminal:
        ask(terminal, claude.api, "what is left to do?")
        terminal.wait(lambda: "1otheractive" in "".join(terminal.text().split()), "the status line")
