"""Calls that are stopped with `collisions: ask`: which ones, for what reason, and if nobody can be asked."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from git_scene import GIT_ENVIRONMENT, git
from hooks_scene import run
from records import append, assistant, user
from tool_call_scene import Project

from session_memory.awareness.events import tool_call
from session_memory.awareness.events.context import context_of, home_of
from session_memory.common.system.deadline import DeadlineError
from session_memory.sessions.runtimes.table import runtime

INTERACTIVE = {"CLAUDE_CODE_ENTRYPOINT": "cli"}
PRINT_MODE = {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}
UNCOMMITTED = 'app, edited just now by "discord" and not committed since'
ASKED = f"session-memory: {UNCOMMITTED}"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.user.config("collisions: ask\n")
    log = project.directory / ".git" / "logs" / "HEAD"
    # git's times are whole seconds
    log.write_text(re.sub(r"> \d+ ", f"> {int(time.time()) - 3600} ", log.read_text()))
    return project


def answer(
    project: Project, tool: str, argument: str, *, call_id: str = "toolu_9", **environment: str
) -> Any:
    """What the hook answers to a call, as a dict; empty for nothing."""
    given = {"command": argument} if tool == "Bash" else {"file_path": argument}
    event = project.user.event(
        hook_event_name="PreToolUse",
        cwd=project.cwd,
        tool_name=tool,
        tool_input=given,
        tool_use_id=call_id,
    )
    output = run(event, project.user.root, "pre_tool_use", **(environment or INTERACTIVE))
    return json.loads(output)["hookSpecificOutput"] if output else {}


def reason(project: Project, tool: str, argument: str, **others: str) -> str:
    """Why a person is asked; '' where nobody is."""
    found = answer(project, tool, argument, **others)
    assert found.get("permissionDecision", "ask") == "ask"
    return str(found.get("permissionDecisionReason", ""))


def app(project: Project) -> str:
    return str(project.directory / "app")


def made(project: Project, call_id: str, *, fails: bool = False) -> None:
    """The call was made and has its result, or was refused."""
    path = {"file_path": app(project)}
    append(
        project.own,
        assistant(
            {"type": "tool_use", "id": call_id, "name": "Edit", "input": path}, cwd=project.cwd
        ),
    )
    result = {"tool_use_id": call_id, "type": "tool_result", "content": "", "is_error": fails}
    append(project.own, user([result], cwd=project.cwd))


def quiet_since(project: Project, minutes: float) -> None:
    then = time.time() - minutes * 60
    os.utime(project.other, (then, then))


def test_an_edit_of_what_another_session_has_not_committed_is_held_back_and_told(project):
    project.edited()
    found = answer(project, "Edit", app(project))
    assert found["permissionDecision"] == "ask"
    assert found["permissionDecisionReason"] == ASKED
    assert '! app: edited just now by "discord", before you edited it' in found["additionalContext"]


def test_it_is_held_back_again_until_it_was_allowed_and_then_for_another_edit(project):
    project.edited()
    assert reason(project, "Edit", app(project), call_id="toolu_1") == ASKED
    made(project, "toolu_1", fails=True)
    assert reason(project, "Edit", app(project), call_id="toolu_2") == ASKED
    made(project, "toolu_2")
    assert reason(project, "Edit", app(project), call_id="toolu_3") == ""
    project.edited()
    assert reason(project, "Edit", app(project), call_id="toolu_4") == ASKED


def test_what_was_told_with_an_earlier_prompt_is_held_back_all_the_same(project):
    project.edited()
    project.user.run(cwd=project.cwd)
    found = answer(project, "Edit", app(project))
    assert found["permissionDecisionReason"] == ASKED
    assert "additionalContext" not in found


def test_what_was_committed_since_is_not_held_back(project):
    project.edited()
    git(project.directory, "commit", "-qam", "done")
    assert reason(project, "Edit", app(project)) == ""


CALLS = {
    "git reset --hard": ("Bash", "git reset --hard"),
    "git checkout -- app": ("Bash", "git checkout -- app"),
    "git stash": ("Bash", "git stash"),
    "git restore app": ("Bash", "git restore app"),
    "an edit": ("Edit", "app"),
}
UNRELATED = {
    "another file": "echo 2 > db; git commit -qm other -- db",
    "another new file": "echo 2 > more; git add more; git commit -qm more -- more",
    "a reworded message": "git commit -q --amend --only -m reworded",
    "nothing": "git commit -q --allow-empty -m empty",
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("committed", UNRELATED)
def test_a_commit_of_something_else_lets_no_call_through(
    project: Project, call: str, committed: str
) -> None:
    project.edited()
    subprocess.run(
        ["sh", "-c", UNRELATED[committed]], cwd=project.directory, env=GIT_ENVIRONMENT, check=True
    )
    tool, argument = CALLS[call]
    assert reason(project, tool, app(project) if tool == "Edit" else argument).endswith(UNCOMMITTED)


@pytest.mark.parametrize("call", CALLS)
def test_an_edit_in_the_second_of_a_commit_of_the_file_is_held_back(
    project: Project, call: str
) -> None:
    project.edited()
    git(project.directory, "commit", "-qam", "earlier")
    project.edited()
    tool, argument = CALLS[call]
    assert reason(project, tool, app(project) if tool == "Edit" else argument).endswith(UNCOMMITTED)


@pytest.mark.parametrize(
    "commit", ["commit -qam done", "commit -q --amend --no-edit -a", "commit -qm done -- app"]
)
def test_a_commit_of_the_file_lets_every_call_through(project: Project, commit: str) -> None:
    project.edited()
    git(project.directory, *commit.split())
    git(project.directory, "pack-refs", "--all")
    for tool, argument in CALLS.values():
        assert reason(project, tool, app(project) if tool == "Edit" else argument) == ""


def test_a_file_that_was_put_back_is_not_held_back(project: Project) -> None:
    project.edited()
    Path(app(project)).write_text("1\n")
    assert reason(project, "Edit", app(project)) == ""


def test_nothing_is_held_back_for_a_session_that_was_not_active_for_long(project):
    project.edited()
    quiet_since(project, 16)
    assert reason(project, "Edit", app(project)) == ""
    assert reason(project, "Bash", "git switch -c fix") == ""
    quiet_since(project, 14)
    assert reason(project, "Edit", app(project)) == ASKED


def test_a_command_that_takes_an_edit_along_is_held_back_however_long_the_session_has_been_quiet(
    project,
):
    project.edited()
    quiet_since(project, 300)
    assert "affects app, edited " in reason(project, "Bash", "git commit -qam done")


def test_nothing_is_held_back_for_an_excluded_session_nor_for_an_edit_that_was_refused(project):
    project.edited("db")
    project.user.config("collisions: ask\nsessions: {discord: {ignore: true}}\n")
    assert reason(project, "Edit", str(project.directory / "db")) == ""
    project.user.config("collisions: ask\nsessions: {discord: {text: false}}\n")
    assert reason(project, "Edit", str(project.directory / "db")) == ASKED.replace("app", "db")
    assert reason(project, "Edit", app(project)) == ""


def test_a_git_command_that_reaches_what_another_has_not_committed_is_held_back(project):
    project.edited()
    for command in (
        "git stash",
        "git commit -am all",
        "git add -A",
        "git add .",
        "git reset --hard",
        "git checkout -- app",
        "git checkout app",
        "git restore app",
        "cd . && git clean -f",
        "git -c core.pager=cat stash -u",
        "git rm -f app",
    ):
        found = reason(project, "Bash", command)
        assert (found.startswith("session-memory: "), found.endswith(UNCOMMITTED)) == (
            True,
            True,
        ), command


def test_a_git_command_that_moves_the_worktree_under_another_is_held_back(project):
    append(project.other, assistant(("Read", {"file_path": app(project)}), cwd=project.cwd))
    for command in ("git switch -c fix", "git checkout main", "git pull", "git rebase main"):
        said = f'session-memory: `{command}` changes the worktree of "discord", active just now'
        assert reason(project, "Bash", command) == said


def test_other_commands_are_not_held_back(project):
    project.edited()
    for command in (
        "git status",
        "git stash list",
        "git add db",
        "git commit -m x",
        "git checkout db",
        "git clean -n",
        "git clean -n -f",
        "git log",
        "git commit -Fa",
        "git -C /nowhere switch x",
        "echo git",
        "git rebase --continue",
        "cd /nowhere && git stash",
        "git diff -- app",
    ):
        assert answer(project, "Bash", command) == {}, command


def test_in_another_worktree_nothing_is_held_back(project, tmp_path):
    git(project.directory, "worktree", "add", "-q", str(tmp_path / "wt"))
    project.edited()
    assert reason(project, "Bash", f"cd {tmp_path / 'wt'} && git switch -c fix && git stash") == ""
    assert reason(project, "Edit", str(tmp_path / "wt" / "app")) == ""


@pytest.mark.parametrize("environment", [PRINT_MODE, {"LANG": "C"}], ids=["print mode", "unknown"])
def test_where_nobody_can_be_asked_it_is_only_told(project, environment):
    project.edited()
    project.user.run(cwd=project.cwd)
    found = answer(project, "Edit", app(project), **environment)
    assert found.keys() == {"hookEventName", "additionalContext"}
    assert found["additionalContext"].endswith(f"\n! {UNCOMMITTED}")
    assert answer(project, "Edit", app(project), **environment) == {}
    told = answer(project, "Bash", "git stash", **environment)["additionalContext"]
    assert told.endswith(f"\n! `git stash` affects {UNCOMMITTED}")


def test_with_tell_no_command_is_answered(project):
    project.user.config("collisions: tell\n")
    project.edited()
    assert answer(project, "Bash", "git stash") == {}
    assert "permissionDecision" not in answer(project, "Edit", app(project))


ABSURD = {
    "directories": "cd a && " * 30_000,
    "absolute directories": "cd a/b/c/d/e && " * 30_000,
    "subshells": "(" * 100_000 + ":" + ")" * 100_000 + "; ",
    "shells": "sh -c 'sh -c \"git status\"'; " * 20_000,
    "assignments": "A=1 " * 100_000,
    "options": "git " + "-C a " * 40_000 + "status; ",
    "redirections": "> a " * 100_000 + "; ",
    "here-documents": "cat " + "<<A " * 40_000 + "\n" + "A\n" * 40_000,
    "paths": "rm " + "../" * 200 * 1_000 + "x; ",
    "operands": "mv " + "x " * 100_000 + "d/; ",
    "parts": "rm " + "/a" * 20_000 + "; ",
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ABSURD)
def test_an_absurd_command_is_judged_or_its_user_asked_within_the_time_of_the_runtime(
    project, name
):
    project.edited()
    started = time.monotonic()
    asked = reason(project, "Bash", ABSURD[name] + f"cd {project.directory} && git stash")
    assert time.monotonic() - started < 15
    assert "affects app, edited " in asked or "could not be checked in time" in asked


def test_the_user_is_asked_about_a_git_command_if_the_whole_hook_ran_out_of_time(
    project, monkeypatch
):
    event = project.user.event(
        hook_event_name="PreToolUse",
        cwd=project.cwd,
        tool_name="Bash",
        tool_input={"command": "git stash"},
        tool_use_id="toolu_9",
    )
    environ = {"HOME": str(project.user.root), **INTERACTIVE}
    context = context_of(
        event, environ, runtime("agent-sdk"), home_of(event, environ, runtime("agent-sdk"))
    )
    monkeypatch.setattr(type(context), "other_sessions", Mock(side_effect=DeadlineError))
    printed = []
    with pytest.raises(DeadlineError):
        tool_call.answer(context, printed.append)
    (output,) = printed
    assert "`git stash` could not be checked in time" in json.dumps(output).replace("\\", "")


def test_an_edit_of_a_path_of_20_000_parts_is_let_through_within_the_time_of_the_runtime(project):
    for setting in ("tell", "ask"):
        project.user.config(f"collisions: {setting}\n")
        started = time.monotonic()
        assert answer(project, "Edit", "/a" * 20_000) == {}
        assert answer(project, "Edit", str(project.directory) + "/../a" * 20_000) == {}
        assert time.monotonic() - started < 15


NOT_COMMITTED = 'by "discord" and not committed since'


def ran(project: Project, command: str) -> None:
    """The other session runs a command, now."""
    with during(project, command):
        pass


@contextmanager
def during(project: Project, command: str) -> Iterator[None]:
    """The other session runs a command, which may still run in the block."""
    call = {
        "type": "tool_use",
        "id": f"toolu_{time.time_ns()}",
        "name": "Bash",
        "input": {"command": command},
    }
    append(project.other, assistant(call, cwd=project.cwd))
    with subprocess.Popen(["sh", "-c", command], cwd=project.directory, env=GIT_ENVIRONMENT) as run:
        yield
    assert run.returncode == 0
    result = {"tool_use_id": call["id"], "type": "tool_result", "content": "Done."}
    append(project.other, user([result], cwd=project.cwd))


def test_a_commit_that_takes_what_another_session_has_edited_or_staged_is_held_back(
    project: Project,
) -> None:
    project.edited()
    for command in ("git commit -m x -- app", "git commit app -m x", "git commit --only app -m x"):
        assert f"affects app, edited just now {NOT_COMMITTED}" in reason(
            project, "Bash", command
        ), command
    assert reason(project, "Bash", "git commit -m x") == ""
    assert reason(project, "Bash", "git commit -m app -- db") == ""
    git(project.directory, "add", "app")
    assert f"affects app, edited just now {NOT_COMMITTED}" in reason(
        project, "Bash", "git commit -m x"
    )


@pytest.mark.parametrize(
    ("hook", "line"),
    [
        (".git/hooks/pre-commit", "# File generated by pre-commit: https://pre-commit.com"),
        (".git/hooks/pre-commit", "# File generated by prek: https://github.com/j178/prek"),
        (".husky/pre-commit", "npx lint-staged --hide-unstaged"),
    ],
)
def test_a_commit_whose_hooks_take_the_edits_of_an_active_session_is_held_back(
    project: Project, hook: str, line: str
) -> None:
    """An edit that another session makes while they run is lost, or committed."""
    project.edited("app")
    assert reason(project, "Bash", "git commit -m x") == ""
    path = project.directory / hook
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    told = reason(project, "Bash", "git commit -m x")
    assert told == (
        "session-memory: the hooks of `git commit -m x` take unstaged edits out of app, "
        'edited just now by "discord" and not committed since'
    )
    for command in ("git commit -m '- new price'", "git commit -uno -m x", "git commit -Snow -m x"):
        assert f"the hooks of `{command}` take" in reason(project, "Bash", command)
    for command in ("git commit --no-verify -m x", "git commit -nm x", "git add db"):
        assert reason(project, "Bash", command) == "", command
    quiet_since(project, 20)
    assert reason(project, "Bash", "git commit -m x") == ""


def test_lint_staged_takes_edits_only_out_of_files_that_are_staged_in_part(
    project: Project,
) -> None:
    """See findings/edit-during-a-commit.sh."""
    hook = project.directory / ".husky" / "pre-commit"
    hook.parent.mkdir()
    hook.write_text("npx lint-staged\n")
    project.edited("app")
    assert reason(project, "Bash", "git commit -m x") == ""
    git(project.directory, "add", "app")
    project.edited("app")
    assert "affects app, edited just now" in reason(project, "Bash", "git commit -m x")


def test_a_removal_that_is_not_committed_is_held_back_until_the_file_is_back(
    project: Project,
) -> None:
    ran(project, "rm db")
    for command in (
        "git checkout -- db",
        "git add -A",
        "git commit -am x",
        "git stash",
        "git reset --hard",
    ):
        assert f"affects db, removed just now {NOT_COMMITTED}" in reason(
            project, "Bash", command
        ), command
    git(project.directory, "checkout", "--", "db")
    assert reason(project, "Bash", "git reset --hard") == ""


def test_a_renamed_file_is_held_back(project: Project) -> None:
    ran(project, "git mv app other")
    assert f"just now {NOT_COMMITTED}" in reason(project, "Bash", "git reset --hard")
    assert f"just now {NOT_COMMITTED}" in reason(project, "Bash", "git commit -m x")


@pytest.mark.parametrize(
    "command",
    ["git reset --hard HEAD~0", "git checkout -f main", "git switch --discard-changes main"],
)
def test_a_forced_move_is_held_back_however_long_the_session_has_been_quiet(
    project: Project, command: str
) -> None:
    project.edited()
    quiet_since(project, 300)
    assert f"affects app, edited just now {NOT_COMMITTED}" in reason(project, "Bash", command)
    assert (
        reason(
            project,
            "Bash",
            command.replace("--hard", "--soft")
            .replace("-f ", "")
            .replace("--discard-changes ", ""),
        )
        == ""
    )


def test_a_command_that_spares_new_files_is_not_held_back_for_them(project: Project) -> None:
    (project.directory / "new").write_text("1\n")
    project.edited("new")
    for command in ("git reset --hard", "git stash", "git commit -am x", "git checkout -- ."):
        assert reason(project, "Bash", command) == "", command
    for command in ("git clean -f", "git add -A", "git stash -u", "git add new"):
        assert f"affects new, edited just now {NOT_COMMITTED}" in reason(
            project, "Bash", command
        ), command


def test_a_stash_of_other_files_is_not_held_back(project: Project) -> None:
    project.edited()
    assert reason(project, "Bash", "git stash push -m mine -- db") == ""
    assert "affects app" in reason(project, "Bash", "git stash push -m mine -- app")


def test_what_a_script_wrote_is_held_back(project: Project) -> None:
    script = "python3 - <<'EOF'\nopen('app', 'a').write('2')\nopen('./app', 'a').write('2')\nEOF"
    ran(project, script)
    changed = 'app, changed just now during a command of "discord" and not committed since'
    assert changed in reason(project, "Edit", app(project))
    git(project.directory, "commit", "-qam", "done")
    assert reason(project, "Edit", app(project)) == ""


def test_an_ignored_file_and_files_outside_the_repository_are_not_held_back(
    project: Project, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("1\n")
    os.symlink(outside, project.directory / "link")
    project.edited("../outside")
    assert reason(project, "Edit", str(outside)) == ""
    assert reason(project, "Bash", "git add -A") == ""


def in_worktree(project: Project) -> Path:
    place = project.directory.parent / "wt"
    git(project.directory, "worktree", "add", "-q", str(place), "-b", "wt")
    return place


@pytest.mark.parametrize(
    "command",
    ["git stash pop", "git stash drop", "git stash clear", "git update-ref -d refs/stash"],
)
def test_a_command_that_takes_the_stash_of_another_session_is_held_back(
    project: Project, command: str
) -> None:
    place = in_worktree(project)
    ran(project, "echo 2 > app; git stash -q")
    why = reason(project, "Bash", f"cd {place} && {command}")
    assert f"`{command}` removes the stash" in why
    assert why.endswith('of "discord", active just now')
    assert reason(project, "Bash", f"cd {place} && git stash list") == ""


def test_a_pop_of_the_backup_that_a_commit_hook_keeps_in_the_stash_is_held_back(
    project: Project,
) -> None:
    """As lint-staged does: it removes its backup at the end of the commit."""
    place, hook = in_worktree(project), project.directory / ".git/hooks/pre-commit"
    os.mkfifo(project.directory / ".git/end")
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        '#!/bin/sh\ngit stash store -m "automatic backup" "$(git stash create)"\n'
        "echo kept > .git/end\nread end < .git/end\ngit stash drop -q\n"
    )
    hook.chmod(0o755)
    with during(project, "echo 2 > app; git commit -qam two"):
        (project.directory / ".git/end").read_text()
        try:
            why = reason(project, "Bash", f"cd {place} && git stash pop")
        finally:
            (project.directory / ".git/end").write_text("\n")
    assert '`git stash pop` removes the stash "automatic backup"' in why
    assert why.endswith('of "discord", active just now')


def test_a_pop_of_a_stash_that_no_session_made_is_not_held_back(project: Project) -> None:
    project.edited()
    git(project.directory, "stash", "-q")
    quiet_since(project, 60)
    assert reason(project, "Bash", "git stash pop") == ""


def test_the_removal_of_a_worktree_in_which_another_session_edited_is_held_back(
    project: Project,
) -> None:
    place = in_worktree(project)
    ran(project, f"echo 2 > {place}/app")
    for command in ("git worktree remove --force ../wt", f"git worktree move {place} ../wt2"):
        why = reason(project, "Bash", command)
        assert "affects " in why, command
        assert why.endswith(NOT_COMMITTED), command
    assert reason(project, "Bash", "git worktree list") == ""


def test_a_command_that_takes_commits_of_another_session_s_branch_is_held_back(
    project: Project,
) -> None:
    place = in_worktree(project)
    ran(project, f"cd {place} && echo 2 > app && git commit -qam two")
    project.user.run(cwd=project.cwd)  # a prompt notes who made the commit
    for command in (
        "git branch -D wt",
        "git branch -f wt HEAD~1",
        "git branch -M other wt",
        "git push --force origin HEAD:wt",
        "git push . --delete wt",
        "git push origin :wt",
        "git update-ref refs/heads/wt HEAD~1",
        "git update-ref -d refs/heads/wt",
        "git checkout -B wt main",
        "git switch -C wt",
    ):
        why = reason(project, "Bash", command)
        assert f'`{command}` removes commits from branch wt of "discord"' in why, command
    for command in (
        "git branch -f mine wt",
        "git branch mine wt",
        "git push origin wt",
        "git update-ref refs/heads/mine wt",
    ):
        assert reason(project, "Bash", command) == "", command
