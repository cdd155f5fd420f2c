"""`session-memory ingest --checkpoints`: sessions that a repository keeps in git become its history."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from checkpoint_branch import BRANCH, checkpoint, checkpoint_ref, git
from page_scene import ServedPage
from records import assistant, exchange, lines, user
from store_scene import StoreUser, trip

from session_memory.common.text.format import counted

FIRST = "01a1fb3f-0000-4c0f-9f3a-000000000001"
FIXTURES = Path(__file__).resolve().parents[2] / "sessions" / "runtimes" / "fixtures"
ELSEWHERE = "/home/ann/lighthouse"  # on the machine of whoever said it


@pytest.fixture
def person(tmp_path: Path) -> StoreUser:
    return StoreUser(tmp_path / "user")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "clone"
    path.mkdir()
    git(path, "init", "-q", "-b", BRANCH, ".")
    git(path, "commit", "-q", "--allow-empty", "-m", "Start")
    git(path, "branch", "work")
    git(path, "checkout", "-q", "work")
    said = exchange("The lighthouse blinks too fast.", "I slow it down.", cwd=ELSEWHERE)
    checkpoint(path, "aa1111111111", **{FIRST: lines(*said)})
    more = exchange("From now on always dim the lamp.", "I dim it.", cwd=ELSEWHERE)
    checkpoint(path, "bb2222222222", **{f"2026-01-15-{FIRST}": lines(*said, *more)})
    return path


def test_of_each_session_the_longest_transcript_is_in_the_store_as_said_in_the_repository(
    person, repository
):
    done = person.result("ingest", "--checkpoints", repository)
    assert (done["files"], done["entries"], done["problems"]) == (1, 4, [])
    assert "From now on always dim the lamp." in person.stored()
    found = person.result("search", "lighthouse", "--project", repository)
    assert FIRST in json.dumps(found["hits"])
    assert str(repository) in json.dumps(found)
    assert ELSEWHERE not in json.dumps(found)


def test_again_it_is_unchanged_and_what_a_later_checkpoint_adds_is_new(person, repository):
    person.run("ingest", "--checkpoints", repository)
    assert person.result("ingest", "--checkpoints", repository)["bytes"] == 0
    before = person.stored()
    content = git(repository, "show", f"{BRANCH}:bb/2222222222/0/full.jsonl").encode()
    later = content + lines(*exchange("Paint it red.", "Done.", cwd=ELSEWHERE))
    checkpoint(repository, "cc3333333333", **{FIRST: later})
    assert person.result("ingest", "--checkpoints", repository)["bytes"] > 0
    assert sorted(person.stored()) == sorted([*before, "Paint it red.", "Done."])
    assert person.run("ingest").returncode == 0
    assert len(person.stored()) == 6


def test_a_dry_run_says_how_much_there_is(person, repository):
    assert "1 file (" in person.run("ingest", "--checkpoints", repository, "--dry-run").stdout


def test_a_session_that_its_runtime_has_here_too_is_taken_once(person, repository):
    content = git(repository, "show", f"{BRANCH}:bb/2222222222/0/full.jsonl").encode()
    path = person.projects / "-srv-agent" / f"{FIRST}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    person.run("ingest")
    assert person.result("ingest", "--checkpoints", repository)["files"] == 0
    assert len(person.result("conversations")["conversations"]) == 1


def test_so_it_is_if_its_runtime_has_it_later(person, repository):
    person.run("ingest", "--checkpoints", repository)
    content = git(repository, "show", f"{BRANCH}:bb/2222222222/0/full.jsonl").encode()
    path = person.projects / "-srv-agent" / f"{FIRST}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    person.run("ingest")
    assert len(person.stored()) == 4


def test_what_is_forgotten_does_not_come_back(person, repository):
    person.run("ingest", "--checkpoints", repository)
    assert person.run("forget", FIRST, "--yes").returncode == 0
    assert person.stored() == []
    person.run("ingest", "--checkpoints", repository)
    person.run("ingest", "--checkpoints", repository, "--reimport")
    assert person.stored() == []


def test_a_rule_for_the_repository_holds_for_what_others_said_in_it(person, repository):
    person.run("ingest", "--checkpoints", repository)
    person.config(f"projects: {{'{repository}': {{ignore: true}}}}\n")
    assert "blinks" not in person.run("search", "lighthouse").stdout
    assert person.result("conversations")["conversations"] == []


def test_no_memory_is_made_of_it_and_no_session_is_reported(person, repository):
    person.config("memory: {strategies: [extractive]}\n")
    for count in (1, 2):
        person.session(f"own-{count}", *trip())
        person.run("ingest")
        assert (
            f"extractive: {counted(count, 'conversation')}"
            in person.run("process", "--dry-run").stdout
        )
        old = lines(*[{**record, "uuid": f"{number:032}"} for number, record in enumerate(trip())])
        checkpoint(repository, f"cc444444444{count}", **{f"of-another-{count}": old})
        assert person.result("ingest", "--checkpoints", repository)["entries"] > 4
        assert (
            f"extractive: {counted(count, 'conversation')}"
            in person.run("process", "--dry-run").stdout
        )
    assert "lighthouse" not in person.run("sessions", "--all", cwd=repository).stdout


def test_an_agent_may_not_take_in_what_a_repository_holds(person, repository):
    done = person.run("ingest", "--checkpoints", repository, CLAUDECODE="1")
    assert done.returncode == 1
    assert "only for people" in done.stderr


def test_git_runs_nothing_that_the_repository_names(person, repository, tmp_path):
    mark = tmp_path / "ran"
    for key in (
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "filter.x.smudge",
        "diff.external",
        "gpg.program",
    ):
        git(repository, "config", key, f"touch {mark}")
    (repository / ".git" / "info" / "attributes").write_text("* filter=x diff=x\n")
    assert person.result("ingest", "--checkpoints", repository)["entries"] == 4
    assert not mark.exists()


def test_odd_checkpoints_cost_themselves_alone(person, repository):
    odd = {
        "../../up": b"x",
        "foreign": b'{"a": 1}\n',
        "torn": lines(user("torn one"), assistant("yes")) + b'{"type": "us',
    }
    checkpoint(repository, "dd4444444444", **odd)
    git(repository, "checkout", "-q", BRANCH)
    for id, metadata in (
        ("ee5555555555", "{"),
        ("ee6666666666", "[]"),
        ("ee7777777777", '{"session_id": null}'),
    ):
        folder = repository / id[:2] / id[2:] / "0"
        folder.mkdir(parents=True)
        (folder / "metadata.json").write_text(metadata)
        (folder / "full.jsonl").write_text("x")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "odd")
    done = person.result("ingest", "--checkpoints", repository)
    assert (done["files"], done["entries"], len(done["foreign"])) == (3, 6, 1)


@pytest.mark.parametrize("name", ["codex", "copilot", "opencode", "pi", "qwen-code", "gemini"])
def test_the_sessions_of_every_runtime_are_read(person, repository, name):
    checkpoint(
        repository,
        "ff8888888888",
        **{"other-session": (FIXTURES / name / "conversation.jsonl").read_bytes()},
    )
    person.run("ingest", "--checkpoints", repository)
    assert "How do I deploy this?" in person.stored()


def test_a_document_that_opencode_exports_is_read_and_known_again(person, repository):
    times = {"created": 1_772_924_668_464, "updated": 1_772_924_750_657}
    info = {"id": "ses_33", "directory": ELSEWHERE, "title": "The horn", "time": times}
    said = {"role": "user", "id": "msg_1", "time": {"created": 1_772_924_668_468}}
    answer = {
        "role": "assistant",
        "id": "msg_2",
        "parentID": "msg_1",
        "finish": "stop",
        "path": {"cwd": ELSEWHERE},
    }
    answer["time"] = {"created": 1_772_924_668_472, "completed": 1_772_924_671_949}
    tool = {"type": "tool", "id": "prt_2", "callID": "c1", "tool": "bash"}
    tool["state"] = {"status": "completed", "input": {"command": "make horn"}, "output": "done"}
    messages = [
        {"info": said, "parts": [{"type": "text", "id": "prt_1", "text": "Sound the horn."}]},
        {
            "info": answer,
            "parts": [
                {"type": "step-start", "id": "prt_0"},
                tool,
                {"type": "text", "id": "prt_3", "text": "It sounds."},
            ],
        },
    ]
    document = json.dumps({"info": info, "messages": messages}, indent=2).encode()
    checkpoint(repository, "ab9999999999", **{"ses_33": document})
    person.run("ingest", "--checkpoints", repository)
    assert {"Sound the horn.", "It sounds."} <= set(person.stored())
    assert "make **horn**" in person.run("search", "horn", "--role", "tool").stdout
    assert person.result("ingest", "--checkpoints", repository)["bytes"] == 0


@pytest.mark.parametrize("is_log", [True, False])
def test_a_chat_is_read_once_as_gemini_keeps_it(person, repository, is_log):
    head = {
        "sessionId": "a1b2",
        "projectHash": "00",
        "startTime": "2026-06-11T07:00:00.000Z",
        "kind": "main",
    }
    asked = {
        "id": "u1",
        "timestamp": "2026-06-11T07:00:01.000Z",
        "type": "user",
        "content": [{"text": "Paint the door."}],
    }
    answer = {
        "id": "g1",
        "timestamp": "2026-06-11T07:00:02.000Z",
        "type": "gemini",
        "content": "Painted.",
    }
    call = {
        "id": "c1",
        "name": "run_shell_command",
        "args": {"command": "paint"},
        "status": "success",
    }
    log = [
        head,
        asked,
        answer,
        {**answer, "toolCalls": [call]},
        {"$set": {"lastUpdated": "2026-06-11T07:00:03.000Z"}},
    ]
    whole = {**head, "messages": [asked, {**answer, "toolCalls": [call]}]}
    content = lines(*log) if is_log else json.dumps(whole, indent=2).encode()
    checkpoint(repository, "ac9999999999", a1b2=content)
    person.run("ingest", "--checkpoints", repository)
    assert sorted(person.stored()).count("Painted.") == 1
    assert "Paint the door." in person.stored()
    assert "**paint**" in person.run("search", "paint", "--role", "tool").stdout


def test_a_handoff_reports_no_file_of_another_machine_as_gone(person, repository):
    place = "/home/ann/clone"
    calls = [
        {
            "type": "tool_use",
            "id": f"t{number}",
            "name": "Write",
            "input": {"file_path": f"{place}/{name}", "content": "x"},
        }
        for number, name in enumerate(("lamp.py", "never.py"))
    ]
    results = [
        {"type": "tool_result", "tool_use_id": call["id"], "content": "done"} for call in calls
    ]
    said = [
        user("Write both.", cwd=place),
        assistant(*calls, cwd=place),
        user(results, cwd=place),
        assistant("Done.", cwd=place),
    ]
    checkpoint(repository, "ad9999999999", **{"both": lines(*said)})
    (repository / "lamp.py").write_text("x")
    git(repository, "add", "lamp.py")
    git(repository, "commit", "-q", "-m", "Add the lamp")
    person.run("ingest", "--checkpoints", repository)
    page = person.run("handoff", "both").stdout
    assert "- lamp.py: committed" in page
    assert "- /home/ann/clone/never.py: edited (on another machine)" in page
    assert "gone" not in page


def test_such_a_session_is_marked_where_it_is_found(person, repository):
    person.run("ingest", "--checkpoints", repository)
    mark = f"from checkpoints of {repository.name}"
    found = [
        person.run("search", "lighthouse"),
        person.run("conversations"),
        person.run("show", "1"),
    ]
    assert [mark in done.stdout for done in found] == [True, True, True]
    with ServedPage(person) as page:
        views = [page.view(path).text for path in (f"/session/{FIRST}", "/search?q=lighthouse")]
        assert [mark in text for text in views] == [True, True]


def test_a_repository_without_checkpoints_is_an_error_that_says_what_to_do(person, tmp_path):
    git(tmp_path, "init", "-q", ".")
    done = person.run("ingest", "--checkpoints", tmp_path)
    assert done.returncode == 1
    assert f"git fetch origin {BRANCH}:{BRANCH}" in done.stderr


SECOND = "01a1fb3f-0000-4c0f-9f3a-000000000002"
THIRD = "01a1fb3f-0000-4c0f-9f3a-000000000003"


def test_checkpoints_in_refs_of_their_own_are_read_without_the_branch(person, tmp_path):
    repository = tmp_path / "new"
    repository.mkdir()
    git(repository, "init", "-q", ".")
    said = lines(*exchange("The kettle whistles at 96 degrees.", "It does.", cwd=ELSEWHERE))
    other = lines(*exchange("The toaster glows.", "It does too.", cwd=ELSEWHERE))
    checkpoint_ref(repository, "01M3WE2VX9HQC3NVY9BWYCW6JV", **{SECOND: said, THIRD: other})
    done = person.result("ingest", "--checkpoints", repository)
    assert (done["files"], done["entries"], done["problems"]) == (2, 4, [])
    assert {"The kettle whistles at 96 degrees.", "The toaster glows."} <= set(person.stored())


def test_beside_the_branch_the_longest_transcript_of_both_counts(person, repository):
    more = git(repository, "show", f"{BRANCH}:bb/2222222222/0/full.jsonl").encode()
    more += lines(*exchange("Paint it red.", "Done.", cwd=ELSEWHERE))
    checkpoint_ref(repository, "01M3WE2VX9HQC3NVY9BWYCW6JV", **{FIRST: more})
    checkpoint_ref(
        repository,
        "01M3WE2VX9HQC3NVY9BWYCW6JW",
        **{SECOND: lines(*exchange("New.", "Yes.", cwd=ELSEWHERE))},
    )
    done = person.result("ingest", "--checkpoints", repository)
    assert (done["files"], done["entries"], done["problems"]) == (2, 8, [])
    assert {"From now on always dim the lamp.", "Paint it red.", "New."} <= set(person.stored())


def test_a_shorter_transcript_in_a_ref_takes_nothing_from_the_branch(person, repository):
    checkpoint_ref(
        repository,
        "01M3WE2VX9HQC3NVY9BWYCW6JV",
        **{FIRST: lines(*exchange("Less.", "Yes.", cwd=ELSEWHERE))},
    )
    person.result("ingest", "--checkpoints", repository)
    assert "From now on always dim the lamp." in person.stored()
    assert "Less." not in person.stored()


def test_a_clone_is_told_how_to_fetch_both(person, repository, tmp_path):
    checkpoint_ref(
        repository,
        "01M3WE2VX9HQC3NVY9BWYCW6JV",
        **{SECOND: lines(*exchange("New.", "Yes.", cwd=ELSEWHERE))},
    )
    clone = tmp_path / "other"
    git(
        tmp_path,
        "clone",
        "-q",
        "--single-branch",
        "--branch",
        "work",
        f"file://{repository}",
        str(clone),
    )
    said = person.run("ingest", "--checkpoints", clone).stderr
    commands = re.findall(r"git (fetch origin [^ )]+)", said)
    assert len(commands) == 2
    for command in commands:
        git(clone, *[word.strip("'") for word in command.split(" ")])
    assert person.result("ingest", "--checkpoints", clone)["files"] == 2


def test_a_partial_clone_says_that_it_lacks_the_sessions(person, repository, tmp_path):
    git(repository, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "part"
    git(
        tmp_path,
        "clone",
        "-q",
        "--filter=blob:none",
        "--branch",
        "work",
        f"file://{repository}",
        str(clone),
    )
    done = person.run("ingest", "--checkpoints", clone)
    assert done.returncode == 1
    assert "this clone is partial and lacks the sessions" in done.stderr
    git(clone, "fetch", "-q", "--refetch", "--no-filter")
    assert person.result("ingest", "--checkpoints", clone)["files"] == 1
