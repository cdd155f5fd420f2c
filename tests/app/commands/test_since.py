"""`since` shows on one screen what waits, what fails, what is committed, and each session's work."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import Any

import pytest
from agents_scene import noted_process
from git_scene import git, repository
from records import CWD, assistant, exchange, lines, stamp, tool_result, user
from store_scene import StoreUser

HOUR = 3600


class Person(StoreUser):
    """Somebody whose sessions worked in the repository `api`."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.repository = repository(home / "api", src__login="1\n")
        (self.repository / ".gitignore").write_text("build/\n")

    def works(self, id: str, *records: dict[str, Any], hours: float = 1) -> None:
        """Write a session whose records are a second apart and began so many hours ago."""
        began = time.time() - hours * HOUR
        for number, record in enumerate(records):
            record["timestamp"] = stamp(began + number)
            record["cwd"] = str(self.repository) if record["cwd"] == CWD else record["cwd"]
        self.session(id, *records, project="-api")


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def ran(command: str, output: str = "done", *, fails: bool = False) -> list[dict[str, Any]]:
    return _called("Bash", {"command": command}, output, fails=fails)


def edited(path: Path) -> list[dict[str, Any]]:
    return _called("Edit", {"file_path": str(path), "old_string": "1", "new_string": "2"}, "done")


def _called(
    tool: str, fields: dict[str, str], output: str, *, fails: bool = False
) -> list[dict[str, Any]]:
    call = assistant((tool, fields))
    id = call["message"]["content"][0]["id"]
    result = {"tool_use_id": id, "type": "tool_result", "content": output, "is_error": fails}
    return [call, user([result])]


def failed(command: str, output: str = "Exit code 1\n3 failed") -> list[dict[str, Any]]:
    return ran(command, output, fails=True)


def commit_by_session(person: Person, subject: str) -> list[dict[str, Any]]:
    git(person.repository, "add", "-A")
    git(person.repository, "commit", "-q", "-m", subject)
    id = git(person.repository, "rev-parse", "--short", "HEAD")
    return ran(f'git commit -am "{subject}"', f"[main {id}] {subject}\n 1 file changed")


def test_the_screen_begins_with_what_a_person_has_to_do(person: Person) -> None:
    changed = person.repository / "src" / "login"
    new = person.repository / "src" / "limit"
    built = person.repository / "build" / "out"
    built.parent.mkdir()
    for path in (new, built):
        path.write_text("1\n")
    changed.write_text("2\n")
    committed = commit_by_session(person, "Fix the login")
    changed.write_text("3\n")
    (person.repository / "src" / "more").write_text("1\n")
    person.works(
        "asks",
        user("round the price"),
        *edited(changed),
        *committed,
        assistant("There are two ways.\n\nShall I round each line, or the total?"),
        hours=0.01,
    )
    person.works("stops", user("add a rate limit to the login"), *edited(new), hours=3)
    person.works(
        "fails",
        user("repair the migration of invoices"),
        *edited(built),
        *edited(person.repository / "src" / "more"),
        *failed("npm test"),
        assistant("Three tests fail."),
        hours=2,
    )
    shown = person.run("since", "5h").stdout.splitlines()
    assert shown[0].endswith(
        "3 sessions in 1 project, 3 requests, 4 files, 2 commits and 1 test run."
    )
    text = "\n".join(shown)
    assert '  asked you       just now  api  1  "Shall I round each line, or the total?"' in shown
    assert '  stopped midway  2h ago    api  2  "add a rate limit to the login"' in shown
    assert "npm test: Exit code 1: 3 failed" in text
    assert "  api (main)  2 files: src/login, src/more" in shown
    assert "  api  2: Fix the login; begin" in shown
    assert text.index("Waits for you (2)") < text.index("Still fails (1)")
    assert text.index("Not committed (2 files)") < text.index("Committed (2 commits)")
    assert "round the price  login, 1 commit" in text
    assert "repair the migration of invoices  out and 1 more, tests fail" in text


def test_open_sessions_that_need_their_user_come_first(person: Person) -> None:
    person.works("a", user("add a test"), assistant(("Bash", {"command": "npm test"})), hours=0.5)
    person.works("b", *exchange("say hello", "Hello. And you?"), hours=0.1)
    with noted_process(person.home / ".claude", "a", "waiting", "permission prompt"):
        waiting = person.result("since", "5h")["waiting"]
    assert [(each["state"], each["text"]) for each in waiting] == [
        ("asks for approval", "Bash: npm test"),
        ("asked you", '"And you?"'),
    ]


def test_a_failure_is_over_once_any_session_succeeds(person: Person) -> None:
    person.works("a", user("fix the tests"), *failed("npm run build && npm test"), hours=4)
    person.works("b", user("fix the build"), *ran("npm run build"), hours=3)
    failing = person.result("since", "5h")["failing"]
    assert [each["command"] for each in failing] == ["npm run build && npm test"]
    person.works("c", user("run the tests"), *ran("npm test"), hours=2)
    assert person.result("since", "5h")["failing"] == []


def test_attempts_that_failed_once_are_not_listed(person: Person) -> None:
    person.works("a", user("look around here"), *failed("node try.js"), hours=4)
    assert person.result("since", "5h")["failing"] == []
    person.works("b", user("look around again"), *failed("node try.js"), hours=3)
    [failing] = person.result("since", "5h")["failing"]
    assert (failing["command"], failing["times"]) == ("node try.js", 2)


def test_a_conflict_that_a_session_resolved_does_not_fail(person: Person) -> None:
    person.works(
        "a",
        user("rebase this on main"),
        *failed("git rebase main", "CONFLICT (content)"),
        *ran("git add -A && git rebase --continue"),
    )
    assert person.result("since", "5h")["failing"] == []


def test_a_day_of_30_sessions_fits_on_40_lines(person: Person) -> None:
    for number in range(30):
        directory = person.home / f"project{number % 4}"
        directory.mkdir(exist_ok=True)
        asked = user(f"build part {number} of the machine", cwd=str(directory))
        call = assistant(("Edit", {"file_path": f"{directory}/{number}"}), cwd=str(directory))
        person.works(f"s{number}", asked, call, *failed("make check"), hours=number / 3)
    shown = person.run("since", "12h").stdout.splitlines()
    assert len(shown) <= 40
    assert "30 sessions in 5 projects" in shown[0] or "30 sessions in 4 projects" in shown[0]
    assert max(map(len, shown[1:])) <= 80
    assert any(line.startswith("project3: 7 sessions (") for line in shown)
    whole = person.run("since", "12h", "--limit", "200").stdout
    assert all(f"build part {number} of the machine" in whole for number in range(30))


def test_it_begins_last_evening_unless_a_time_is_given(person: Person) -> None:
    person.works("a", *exchange("say hello", "Hello."))
    now = time.localtime()
    evening = time.mktime((*now[:2], now[2] - 1, 18, 0, 0, 0, 0, -1))
    assert person.result("since")["since"] == stamp(evening)
    assert person.run("since", "1m").returncode == 1
    assert "No session did anything since " in person.run("since", "1m").stdout


def test_messages_that_a_fork_copied_count_once(person: Person) -> None:
    records = exchange("round the price", "Rounded.")
    person.works("a", *records)
    copied = (person.projects / "-api" / "a.jsonl").read_text()
    (person.projects / "-api" / "b.jsonl").write_text(copied)
    projects = person.result("since", "5h")["projects"]
    assert [len(project["sessions"]) for project in projects] == [1]


def test_markdown_has_the_same_sections_and_no_effects(person: Person) -> None:
    person.works("a", *exchange("use <b>bold</b> ![x](http://x) here", "Shall I?"))
    shown = person.run("since", "5h", "--markdown").stdout
    assert shown.startswith("# Since ")
    assert "## Waits for you (1)\n\n- asked you" in shown
    assert "<b>" not in shown.replace("\\<b>", "")
    assert "![x]" not in shown.replace("\\![x]", "")


def test_hidden_sessions_do_not_count(person: Person) -> None:
    person.works("a", *exchange("the secret plan", "Shall I?"))
    person.config(f"projects: {{{person.repository}: {{ignore: true}}}}\n")
    done = person.run("since", "5h")
    assert (done.returncode, "secret" in done.stdout) == (1, False)
    person.config(f"projects: {{{person.repository}: {{quote: false}}}}\n")
    done = person.run("since", "5h")
    assert (done.returncode, "secret" in done.stdout) == (1, False)
    assert "secret" in person.run("since", "5h", "--include-private").stdout


def test_a_project_limits_everything(person: Person) -> None:
    person.works("a", *exchange("round the price", "Rounded. And you?"))
    other = person.home / "other"
    other.mkdir()
    where = {"cwd": str(other)}
    person.works("b", user("fix the links", **where), assistant("Shall I?", **where))
    result = person.result("since", "5h", "--project", "other")
    assert [project["project"] for project in result["projects"]] == ["other"]
    assert [each["session"] for each in result["waiting"]] == ["b"]


def test_a_session_that_spans_the_time_counts_from_then_on(person: Person) -> None:
    person.works("a", *exchange("an old request", "Done."), *exchange("a new one now", "Done."))
    path = person.projects / "-api" / "a.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records[:2]:
        record["timestamp"] = stamp(time.time() - 30 * HOUR)
    path.write_bytes(lines(*records))
    [project] = person.result("since", "5h")["projects"]
    assert project["sessions"][0]["requests"] == ["a new one now"]


def test_a_result_ends_a_turn_only_with_an_answer(person: Person) -> None:
    person.works("a", user("build it now"), assistant(("Bash", {"command": "make"})), tool_result())
    [waiting] = person.result("since", "5h")["waiting"]
    assert waiting["state"] == "stopped midway"


def test_an_open_session_waits_although_it_did_nothing_since_then(person: Person) -> None:
    other = person.home / "other"
    other.mkdir()
    person.works("a", *exchange("round the price", "Rounded."), hours=30)
    where = {"cwd": str(other)}
    person.works("b", user("fix it", **where), assistant("Fixed.", **where), hours=30)
    config_dir = person.home / ".claude"
    with noted_process(config_dir, "a", "idle"), noted_process(config_dir, "b", "idle"):
        for project in (str(person.repository), "api"):
            waiting = person.result("since", "5h", "--project", project)["waiting"]
            assert [each["session"] for each in waiting] == ["a"]
        assert len(person.result("since", "5h")["waiting"]) == 2


def test_the_hint_shows_what_the_screen_lists(person: Person) -> None:
    other = StoreUser(person.home / "with space")
    other.session("b", *exchange("the other home's plan", "Done.", at=time.time() - HOUR))
    person.works("a", *exchange("round the price", "Rounded."))
    person.run("since", "5h")  # so that conversation 1 of this home is another one

    def hinted(*options: str) -> str:
        shown: str = person.run("since", "5h", *options).stdout.splitlines()[-1]
        command = shown.removeprefix("To read one: ")
        text: str = person.run(*shlex.split(command)[1:]).stdout
        return text

    assert "the other home's plan" in hinted("--home", str(other.home / ".claude"))
    person.config(f"projects: {{{person.repository}: {{quote: false}}}}\n")
    assert "round the price" in hinted("--include-private")


def test_everything_that_has_no_room_is_counted(person: Person) -> None:
    for number in range(7):
        directory = repository(person.home / f"project{number}")
        git(directory, "commit", "-q", "--allow-empty", "-m", "Begin")
        asked = user(f"build machine {number}", cwd=str(directory))
        person.works(f"s{number}", asked, hours=number / 10)
    shown = person.run("since", "5h", "--limit", "100").stdout.splitlines()
    assert "Projects: 7 sessions, 7 requests" in shown
    assert shown[shown.index("Committed (14 commits)") + 6] == "  and in 2 more projects"
    person.works("more", user("build machine 0 again", cwd=str(person.home / "project0")))
    shown = person.run("since", "5h", "--limit", "100").stdout.splitlines()
    assert "Other projects: 6 sessions, 6 requests" in shown
    shown = person.run("since", "5h", "--limit", "10").stdout.splitlines()
    assert "and 6 more projects: --limit N shows them" in shown


@pytest.mark.parametrize("number", [5, 6])
def test_a_line_says_how_many_are_left_only_if_they_are_several(
    person: Person, number: int
) -> None:
    commands = ["pytest", "npm test", "cargo test", "go test", "ruff check", "mypy src"][:number]
    results = [record for command in commands for record in failed(command)]
    person.works("fails", user("run the tests"), *results, assistant("They fail."), hours=1)
    text = person.run("since", "5h").stdout
    assert text.count(": Exit code 1") == (5 if number == 5 else 4)
    assert ("and 2 more: --json lists them" in text) == (number == 6)
