"""Rules for all collisions: which do not count, are repeated, must not be told, or are stored."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest
from collision_scene import Pair, collisions, edited_after_reading, play
from git_scene import git, repository
from records import PiSession, stamp

from bench.clones import Actor, Clone
from session_memory.awareness.activity.actions import FileAction
from session_memory.awareness.activity.changes import Observation, OwnSession
from session_memory.awareness.activity.collisions._working_set import KnownFiles
from session_memory.awareness.activity.updates import open_update
from session_memory.common.system import git as system_git
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.settings.compiled import Settings
from session_memory.sessions.transcripts.entries import Session


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


@pytest.fixture
def pair(clone: Clone) -> Pair:
    return Pair(clone)


# What happens, as `play` has it, of which main is told nothing.
NOTHING = {
    "refused": ["main read", "discord refused"],
    "refused_to_the_one_who_asks": ["discord edit", "main refused"],
    "read_again_since": ["main read", "discord edit", "main read"],
    "read_before_this_one_edited_it": ["discord edit", "main read", "main edit"],
    "read_after_this_one_edited_it_too": ["discord edit", "main edit", "main read"],
    "read_before_many_edits": ["discord edit", "main read", *["main edit"] * 9],
    "printed_by_a_command": ["discord edit", "main $ cd src && cat app.py | head -50", "main edit"],
    "shown_as_a_difference": ["discord edit", "main $ git status && git diff", "main edit"],
    "committed_before_this_one_edited_it": [
        "discord edit",
        "discord $ git commit -qam one",
        "later 1",
        "main read",
        "main edit",
    ],
    "edited_by_a_session_that_ended": ["discord edit", "later 61", "main edit"],
    "other_files": [
        "main edit",
        "discord edit src/db.py",
        "discord $ sed -i s/a/b/ Makefile; git add Makefile && git commit -qm one -- Makefile",
    ],
    "own_branch": ["main $ git switch -q -c fix/login", "discord $ git status"],
    "there_and_back": [
        "main read",
        "discord $ git switch -q -c fix/login",
        "discord $ git switch -q main",
    ],
    "switched_by_a_script_of_its_own": ["main $ sh -c 'git switch -q -c \"$0\"' fix/login"],
    "all_committed": [
        "main edit",
        "main $ git commit -qam mine",
        "later 5",
        "discord $ git stash -u; git reset -q --hard; git clean -fd",
    ],
    "others_committed_their_own": [
        "main edit",
        "discord edit src/db.py",
        "discord $ git add src/db.py && git commit -qm theirs; git commit -q --amend --no-edit --date=now",
        "shell git repack -q -a -d",
    ],
    "staged_by_itself": ["main edit", "main $ git add .", "discord $ git add -A"],
    "stashed_and_given_back": [
        "main edit",
        "discord $ git stash -q && git status && git stash pop -q",
    ],
    "not_run": [
        "main edit",
        "discord $ false && echo x > src/app.py; grep -q port src/app.py && sed -i s/a/b/ src/app.py; true",
        "later 1",
        "shell touch src/app.py",
        "later 1",
        "discord $ false && git reset -q --hard",
    ],
    "removed_and_made_again": ["main read", "discord $ mv src away && mv away src"],
    "made_and_removed_by_itself": [
        "main $ mkdir out && cp Makefile src/app.py out/ && rm -r out",
        "main $ cp gone.py copy.py",
        "discord $ git stash -q -u; git clean -fdq",
    ],
    "older_content_committed": [
        "shell echo old >> src/app.py; git add src/app.py",
        "main edit",
        "discord $ git commit -qm 'What was staged'",
    ],
    "only_looked": [
        "main edit",
        "discord $ git stash list; git diff; git add -n .; git clean -nd; git clean -f -n; grep x src/app.py > /dev/null",
    ],
    "written_back": ["main write", "discord edit", "discord $ echo 1 > src/app.py"],
    "in_another_worktree": [
        "main edit",
        "discord $ git worktree add -q ../wt && cd ../wt && echo x > src/app.py && git stash -q && git switch -q -c b",
    ],
}


@pytest.mark.parametrize("happens", NOTHING)
def test_of_what_is_none_nothing_is_told(happens, pair):
    play(pair, NOTHING[happens])
    pair.later()
    assert collisions(pair.main.prompt()) == []


def test_an_edit_after_this_session_read_the_file_is_told_although_it_was_committed(pair):
    pair.main.read("src/app.py")
    pair.discord.edit("src/app.py", "x\n")
    pair.discord.bash("git commit -qam one")
    pair.later(90)
    assert collisions(pair.main.prompt()) == [
        '! src/app.py: edited 1h ago by "discord", after you read it'
    ]


def test_an_earlier_edit_is_told_that_is_not_committed_by_a_session_that_is_active(pair):
    pair.discord.edit("src/app.py", "x\n")
    pair.later(59)
    pair.main.edit("src/app.py", "1\n")
    assert collisions(pair.main.prompt()) == [
        '! src/app.py: edited 59m ago by "discord", before you edited it'
    ]


@pytest.mark.parametrize(
    "command", ["grep -q port src/app.py || echo port >> src/app.py", "[ -d src ] && rm src/app.py"]
)
def test_what_a_command_did_that_another_one_let_is_told_if_it_shows_in_the_file(
    pair: Pair, command: str
) -> None:
    pair.main.read("src/app.py")
    pair.discord.bash(command)
    told = collisions(pair.main.prompt())
    assert len(told) == ("rm" not in command)  # nothing tells when a file went


def test_one_file_has_one_path_whichever_link_leads_to_it(pair: Pair) -> None:
    (pair.clone.root / "lib").symlink_to("src")
    pair.main.edit("lib/app.py", "1\n")
    pair.main.read("lib/db.py")
    pair.discord.edit("src/db.py", "x\n")
    pair.discord.bash("git commit -qam all")
    commit = git(pair.clone.root, "rev-parse", "--short=7", "HEAD")
    assert collisions(pair.main.prompt()) == [
        '! src/app.py: `git commit -qam all` run just now by "discord", while your edit was not committed; now in commit '
        + commit,
        '! src/db.py: edited just now by "discord", after you read it',
    ]
    pair.discord.edit("lib/db.py", "y\n")
    assert collisions(pair.discord.prompt()) == []
    pair.main.read("src/db.py")
    pair.discord.edit("lib/db.py", "z\n")
    assert collisions(pair.main.prompt()) == [
        '! src/db.py: edited just now by "discord", after you read it'
    ]


def test_an_edit_of_the_same_file_in_another_worktree_is_told_to_who_edited_it_too(
    pair: Pair,
) -> None:
    pair.clone.shell("git worktree add -q ../wt")
    other = pair.clone.session("other", pair.clone.root.parent / "wt")
    pair.main.edit("src/app.py", "1\n")
    pair.main.read("src/db.py")
    other.edit("src/app.py", "x\n")
    other.edit("src/db.py", "x\n")
    line = '! src/app.py: edited just now by "other" in worktree wt, and you edited it here'
    assert [collisions(pair.main.prompt()), collisions(pair.main.prompt())] == [[line], []]
    other.edit("src/app.py", "y\n")
    assert pair.main.before_edit("src/app.py") == line
    assert pair.main.before_edit("src/app.py") == ""
    pair.main.edit("src/app.py", "2\n")
    other.edit("src/app.py", "z\n")
    other.bash("git stash -q")
    assert collisions(pair.main.prompt()) == []


def test_an_edit_that_was_refused_is_no_edit_of_this_session_either(pair):
    pair.main.read("src/app.py")
    play(pair, ["discord edit", "main refused"])
    assert collisions(pair.main.prompt()) == [
        '! src/app.py: edited just now by "discord", after you read it'
    ]


def test_the_same_is_not_told_again_until_the_file_is_touched_again(pair):
    edited_after_reading(pair)
    assert len(collisions(pair.main.prompt())) == 1
    pair.discord.edit("src/app.py", "y\n")
    assert collisions(pair.main.prompt()) == []
    pair.main.read("src/app.py")
    pair.discord.edit("src/app.py", "z\n")
    assert len(collisions(pair.main.prompt())) == 1


def test_what_was_not_delivered_is_told_again(pair, monkeypatch):
    edited_after_reading(pair)
    monkeypatch.setattr(
        "session_memory.awareness.activity.delivery.Delivery.__exit__",
        lambda self, *_: self._file.close(),
    )
    first = pair.main.prompt()
    monkeypatch.undo()
    assert collisions(first) == collisions(pair.main.prompt()) != []


def test_a_call_that_has_no_result_yet_is_told_of_when_it_has(pair):
    pair.main.read("src/app.py")
    pair.discord.edit("src/app.py", "x\n")
    content = pair.discord.path.read_bytes().splitlines(keepends=True)
    path = pair.clone.root / "src/app.py"
    after = path.read_text()
    pair.clone.now -= 0.5  # its person is still asked
    pair.discord.path.write_bytes(b"".join(content[:-1]))
    pair.clone.shell("git checkout -q -- src/app.py")
    os.utime(path, (1, 1))
    assert collisions(pair.main.prompt()) == []
    pair.clone.now += 60
    pair.clone.write(path, after)
    result = json.loads(content[-1])
    pair.discord._append({**result, "timestamp": stamp(pair.clone.now)})
    pair.discord.say("Well?")
    assert len(collisions(pair.main.prompt())) == 1


def test_what_does_not_fit_comes_with_the_next_prompts(clone):
    main = clone.session("main")
    others = [clone.session(f"session-{number}") for number in range(8)]
    main.prompt()
    for number, other in enumerate(others):
        name = f"src/a-module-with-a-rather-long-name-{number}.py"
        other.write(name, "0\n")
        main.read(name)
        other.edit(name, "x\n")
    lines: list[str] = []
    for _ in range(6):
        text = main.prompt()
        assert len(text) <= 500
        lines += collisions(text)
    assert sorted(re.findall(r"session-\d", "".join(lines))) == [
        f"session-{number}" for number in range(8)
    ]


def test_several_sessions_that_edited_one_file_share_a_line_that_names_the_newest(
    clone: Clone,
) -> None:
    main = clone.session("main")
    others = [clone.session(f"session-{number}") for number in range(5)]
    main.prompt()
    for name in ("src/app.py", "src/db.py"):
        main.read(name)
        for other in others:
            other.edit(name, "x\n")
    by = 'edited just now by "session-4" and 4 more sessions, after you read them'
    assert collisions(main.prompt()) == [f"! src/db.py and src/app.py: {by}"]
    assert collisions(main.prompt()) == []


def test_edits_of_idle_sessions_leave_half_of_the_room_to_the_newest(clone: Clone) -> None:
    main = clone.session("main")
    newest, *others = [clone.session(f"session-{number}") for number in range(9)]
    main.prompt()
    names = [f"src/a-module-with-a-rather-long-name-{number}.py" for number in range(8)]
    for name, other in zip(names, others):
        other.write(name, "0\n")
        main.read(name)
        other.edit(name, "x\n")
    clone.now += 20 * 60
    newest.edit("src/app.py", "x\n")
    main.edit("src/app.py", "1\n")
    first, *idle = collisions(main.prompt())
    assert first == '! src/app.py: edited just now by "session-0", before you edited it'
    assert 0 < len("\n".join(idle)) <= 250


def test_many_files_of_one_name_take_time_that_grows_with_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    look = system_git._worktree_at
    monkeypatch.setattr(
        system_git, "_worktree_at", lambda directory: looks.append(directory) or look(directory)
    )
    app = repository(tmp_path / "app")
    paths = [f"{app}/part{number}/index.ts" for number in range(200)]
    known = KnownFiles(paths[:100])
    for path in paths[100:]:
        known.recognise(FileAction("edit", path, (0.0, 0, "")))
    assert len(looks) < 1000


class TestState:
    def test_where_nothing_changed_nothing_is_read_and_nothing_written(self, pair):
        edited_after_reading(pair)
        pair.main.prompt()
        pair.main.prompt()  # finds what was told
        pair.main.prompt()
        before = {path: path.stat().st_mtime_ns for path in pair.clone.state.iterdir()}
        pair.main.prompt()
        pair.main.prompt()
        kept = pair.clone.state / f"{pair.main.id}.json"
        assert kept.stat().st_mtime_ns == before[kept]

    def test_what_cannot_be_read_is_as_if_nothing_had_been_touched(self, pair):
        pair.main.edit("src/app.py", "1\n")
        pair.discord.edit("src/db.py", "x\n")
        pair.main.prompt()
        pair.main.prompt()  # finds what was told
        kept = pair.clone.state / f"{pair.main.id}.json"
        state = json.loads(kept.read_text())
        state[pair.main.id][" collisions"] = "{"
        kept.write_text(json.dumps(state))
        pair.discord.edit("src/app.py", "x\n")
        assert collisions(pair.main.prompt()) == []
        pair.main.read("src/app.py")
        pair.discord.edit("src/app.py", "x\n")
        assert len(collisions(pair.main.prompt())) == 1

    def test_what_is_kept_is_for_this_user_alone(self, pair):
        edited_after_reading(pair)
        pair.main.prompt()
        kept = list(pair.clone.state.glob(f"{pair.main.id}.*"))
        assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
        assert {path.suffix for path in kept} == {".json", ".lock"}


def test_without_a_repository_edits_of_the_same_files_are_told(clone):
    shutil.rmtree(clone.root / ".git")
    pair = Pair(clone)
    edited_after_reading(pair)
    assert len(collisions(pair.main.prompt())) == 1


def test_a_session_in_another_worktree_has_collisions_in_its_own(clone):
    git(clone.root, "worktree", "add", "-q", "../wt")
    main = clone.session("main")
    there = Actor(clone, "there", clone.root.parent / "wt")
    clone.sessions.append(there)
    there.say("Go on.")
    there.prompt()
    main.edit("src/app.py", "1\n")
    there.edit("src/db.py", "2\n")
    there.bash("git switch -q -c other")
    assert collisions(main.prompt()) == []
    main.bash("git -C ../wt switch -q -c third")
    assert collisions(there.prompt()) == [
        '! branch is now third (was other): `git switch -q -c third` run just now by "main"'
    ]


def test_sessions_of_pi_name_files_from_their_directory_on(tmp_path):
    app = repository(tmp_path / "app", src__app="1\n")
    now = time.time()

    def session(*calls: tuple[str, dict[str, str], float]) -> PiSession:
        pi = PiSession(cwd=str(app), at=now - 900)
        pi.user("go on", at=now - 800)
        for number, (name, arguments, ago) in enumerate(calls):
            call = {
                "type": "toolCall",
                "id": f"call_{number}",
                "name": name,
                "arguments": arguments,
            }
            pi.assistant(call, at=now - ago, stop="toolUse")
            text = [{"type": "text", "text": "Done."}]
            pi.message(
                "toolResult",
                at=now - ago + 1,
                toolCallId=f"call_{number}",
                content=text,
                isError=False,
            )
        return pi

    own = session(("read", {"path": "src/app"}, 600), ("bash", {"command": "git status"}, 590))
    other = session(("edit", {"path": "./src/app", "oldText": "1", "newText": "2"}, 300))
    os.utime(app / "src/app", (now - 299.5, now - 299.5))
    paths = {pi.id: str(pi.write(tmp_path / "sessions")) for pi in (own, other)}
    reader = OwnSession(
        own.id, runtime("pi"), str(tmp_path / "cursors" / "own.json"), paths[own.id], str(app)
    )
    settings = Settings({})
    others = Observation(reader, [Session(other.id, paths[other.id], "discord")], settings)
    with open_update(others, now=now, limit=500) as update:
        assert collisions(update.text or "") == [
            "! src/app: edited 4m ago by discord, after you read it"
        ]


def test_a_command_that_changed_no_byte_is_no_edit(pair: Pair) -> None:
    pair.main.read("src/app.py")
    pair.discord.bash("sed -i 's/slots = 6/slots = 7/' src/app.py")
    assert collisions(pair.main.prompt()) == []
    pair.discord.bash("sed -i 's/app/application/' src/app.py")
    assert len(collisions(pair.main.prompt())) == 1


def test_a_command_that_undid_an_uncommitted_edit_is_told(pair: Pair) -> None:
    pair.main.edit("src/app.py", "1\n")
    pair.discord.bash("sed -i '$d' src/app.py")
    assert len(collisions(pair.main.prompt())) == 1


def test_after_a_commit_a_command_that_changed_nothing_is_no_edit(pair: Pair) -> None:
    pair.main.edit("src/app.py", "1\n")
    pair.main.bash("git commit -qam Change")
    pair.later()
    pair.discord.bash("sed -i 's/slots = 6/slots = 7/' src/app.py")
    assert collisions(pair.main.prompt()) == []


def test_an_edit_by_a_command_that_was_committed_since_is_told(pair: Pair) -> None:
    pair.main.edit("src/app.py", "1\n")
    pair.main.bash("git commit -qam Change")
    pair.later()
    pair.discord.bash("sed -i 's/1/2/' src/app.py")
    pair.later()
    pair.discord.bash("git commit -qam Another")
    assert [line.partition(" by ")[0] for line in collisions(pair.main.prompt())] == [
        "! src/app.py: edited 5m ago"
    ]
