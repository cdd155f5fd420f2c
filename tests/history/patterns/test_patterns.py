"""Habits without a model: failures and their fixes, sequences of steps, earlier occurrences."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from stored import HOUR, START, Stored, talk

from session_memory.common.text.sanitize import for_people
from session_memory.common.text.shell_commands import (
    LOOKING,
    commit_message,
    family,
    is_looking,
    may_find_nothing,
)
from session_memory.history.patterns.failures import (
    ErrorQuery,
    _similarity,
    failures,
    is_failure,
    normalised,
    what_followed,
)
from session_memory.history.patterns.habits import (
    FailingCommand,
    FilePair,
    find_habits,
    matching_errors,
)
from session_memory.history.store.ingest.extract import _error_line, _error_text
from session_memory.history.store.sqlite.tool_uses import conversation_steps
from session_memory.history.store.values import Filter, StoredEntry

EVERYTHING = Filter(limit=1000)
PASTED = "make: *** No rule to make target 'dist'.  Stop."


class TestFamilies:
    def test_like_commands_have_the_same_name(self):
        for command, name in [
            ("npm run check", "npm run check"),
            ("cd /srv/x && npm run check 2>&1 | tail -5", "npm run check"),
            ("CI=1 npx vitest run --reporter=dot src/a.test.ts", "vitest"),
            ("python3 -m pytest tests/test_a.py -q", "python3 -m pytest"),
            ("/usr/bin/python3 scripts/run.py --fast", "python3 run.py"),
            ("python -c 'print(1)'", "python"),
            (
                "git -C /srv/x add -A && git commit -m 'a; b && c' && git push origin main",
                "git add && git commit && git push",
            ),
            ("git status && git diff | head", LOOKING),
            ("cat a.txt | grep b", LOOKING),
            ("ls; make -j4 all", "make all"),
            ("sed -i 's/a/b/' x.py", "sed"),
            ("sed -n 1,20p x.py", LOOKING),
            ("sudo timeout 30 docker compose up -d", "docker compose"),
            ("for f in *.ts; do mv $f x/$f; done", "mv"),
            ("if [ -f a ]; then cargo test; fi", "cargo test"),
            ("cat <<'EOF' > a.txt\nnpm install\nEOF", LOOKING),
            ("sleep 5 && echo done", ""),
            ("", ""),
            ("'unclosed quote", "unclosed quote"),
            ("find . -name '*.py' -exec grep x {} \\;", LOOKING),
            ("uv run pytest -x", "uv run pytest"),
            ("./bin/run.js start", "run.js"),
            ("rm -rf dist &", "rm"),
        ]:
            assert family(command) == name

    def test_no_text_is_too_odd(self):
        for text in (
            "&& || ;",
            "\\",
            "((",
            "a | | b",
            "<<EOF",
            "$(cat <<'EOF'\nx\nEOF\n)",
            "x" * 10_000,
            "\x00'\"`",
        ):
            assert isinstance(family(text), str)

    def test_what_only_looks_is_known(self):
        for command in ["ls -la", "git log --oneline | head -3", "pwd", "sleep 1"]:
            assert is_looking(command)

    def test_a_search_may_find_nothing(self):
        for command, may in [
            ("grep -rn x .", True),
            ("cat a | grep x", True),
            ("git diff --exit-code", True),
            ("test -f a", True),
            ("grep x a && make", False),
            ("git push", False),
            ("make", False),
        ]:
            assert may_find_nothing(command) is may

    def test_commit_messages_are_found(self):
        for command, message in [
            ("git commit -m 'Fix it' -m more", "Fix it"),
            ('cd x && git add -A && git commit -am "Fix \\"it\\""', 'Fix "it"'),
            ("git commit -m \"$(cat <<'EOF'\nfeat: add it\n\nLong text.\nEOF\n)\"", "feat: add it"),
            ("git commit -qam 'Fix it quietly'", "Fix it quietly"),
            ("git commit --amend --no-edit", ""),
            ("echo git commit -m x", ""),
        ]:
            assert commit_message(command) == message


class TestErrorLines:
    def test_the_line_that_tells_most_is_found(self):
        for text, line in [
            (
                "> app@1.0 test\n> vitest\n\nsrc/a.ts(3,4): error TS2339: Property 'x' does not exist",
                "src/a.ts(3,4): error TS2339: Property 'x' does not exist",
            ),
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 1\n    x()\nValueError: bad\n\nDuring handling:\n\nTraceback (most recent call last):\nKeyError: 'k'",
                "KeyError: 'k'",
            ),
            ("Exit code 2\nmake: no rule\nmore", "Exit code 2: make: no rule"),
            (
                "Exit code 1\n(node:7) ExperimentalWarning: x\nError: Cannot find module 'y'",
                "Exit code 1: Error: Cannot find module 'y'",
            ),
            ("Exit code 1", "Exit code 1"),
            ("(no output)\n\nCommand exited with code 1", "Command exited with code 1"),
            (
                "<tool_use_error>String to replace not found in file.\nString: if error: fatal</tool_use_error>",
                "String to replace not found in file.",
            ),
            ("Found 0 errors\nall fine\n1 test failed: adds", "1 test failed: adds"),
            ("is_error: false\nTimeout: no answer", "Timeout: no answer"),
            ("\x1b[31mfatal: not a git repository\x1b[0m", "fatal: not a git repository"),
            ("something odd\nand more", "something odd"),
            (
                "Exit code 1\n# example.org/app/store\nstore/a.go:12:2: undefined: sum",
                "Exit code 1: store/a.go:12:2: undefined: sum",
            ),
            (
                "--- FAIL: TestSum (0.00s)\n    a_test.go:10: expected 1, got 2\nFAIL\nFAIL\texample.org/app\t0.2s",
                "--- FAIL: TestSum (0.00s)",
            ),
            (
                "$ biome check --error-on-warnings\nsrc/a.ts:3:1 lint/style/useConst\nFound 1 error.",
                "src/a.ts:3:1 lint/style/useConst",
            ),
            (
                "[lint] $ golangci-lint run\na.go:3:1: ineffassign: x\n[lint] ERROR task failed",
                "a.go:3:1: ineffassign: x",
            ),
            ("Exit code 1\nFAIL", "Exit code 1"),
            ("lines\n" * 9000 + "error: at the very end", "error: at the very end"),
            ("", ""),
            ("\n\n", ""),
        ]:
            assert _error_line(for_people(_error_text(text))) == line


class TestLikeErrors:
    def test_they_are_the_same_without_what_differs(self):
        for one, other in [
            (
                "ENOENT: no such file or directory, open '/home/ann/a.md'",
                "ENOENT: no such file or directory, open '/srv/b/c.txt'",
            ),
            ("src/a.ts(3,4): error TS2339: x", "lib/b/c.ts(310,44): error TS2339: x"),
            ("connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED 10.0.0.7:6379"),
            ("segfault at 0x7ffe12 ip deadbeef1", "segfault at 0x0 ip 1234567a"),
            ("[2026-01-02T03:04:05.678Z] failed", "[2025-11-12 13:14:15] failed"),
            ("Exit code 1: boom", "boom"),
            (
                "session 6f1e2d3c-0000-4000-8000-123456789abc is gone",
                "session 00000000-0000-4000-8000-123456789abc is gone",
            ),
        ]:
            assert normalised(one) == normalised(other)

    def test_it_is_the_same_where_one_has_all_telling_words_of_the_other(self):
        for wanted, error, least in [
            ("No rule to make target", PASTED, 0.5),
            (f"and then I got: {PASTED}", PASTED, 0.5),
            (
                "error TS2339: Property 'foo' does not exist",
                "a.ts(3,4): error TS2339: Property 'foo' does not exist",
                1.0,
            ),
            (
                "error TS2339: Property 'foo' does not exist",
                "error TS2551: Property 'foo' does not exist",
                0.0,
            ),
            (
                "Property 'foo' does not exist on type 'Manager'",
                "Property 'bar' does not exist on type 'Manager'.",
                0.0,
            ),
            ("Cannot find module 'lodash'", "Cannot find module 'express'", 0.0),
            ("Property 'foo' does not exist on type 'Manager'", "Cannot find module 'x'", 0.0),
            ("error", PASTED, 0.0),
            ("找不到模块 utils", "错误：找不到模块 utils 于 src", 0.3),
        ]:
            found = _similarity(normalised(wanted), normalised(error))
            assert found >= least if least else found == 0.0

    def test_a_line_of_many_that_says_little_is_no_error(self):
        trace = "Traceback (most recent call last):\n  build()\nRuntimeError: the moon is not there today"
        assert ErrorQuery(trace).similarity("build: nothing to do here") == 0.0
        assert ErrorQuery(trace).similarity("RuntimeError: the moon is not there today") == 1.0


def tools(*uses: tuple[str, ...]) -> list[StoredEntry]:
    numbers = itertools.count(1)
    found = []
    for name, kind, argument, *error in uses:
        item = StoredEntry(
            next(numbers), "tool", argument, None, "/srv/agent", 0, tool=name, kind=kind
        )
        found.append(
            item._replace(outcome="error" if error else "ok", error=error[0] if error else "")
        )
    return found


class TestFailures:
    def test_what_worked_in_between_is_what_helped(self):
        [failure] = failures(
            tools(
                ("Bash", "command", "npm test", "1 failed"),
                ("Bash", "command", "ls"),
                ("Edit", "edit", "/a/b.ts"),
                ("Bash", "command", "npm install left-pad"),
                ("Bash", "command", "cd x && npm test -- --all"),
            )
        )
        assert (failure.tool.error, failure.times, failure.fixed.text) == (
            "1 failed",
            1,
            "cd x && npm test -- --all",
        )
        assert what_followed(failure) == "after editing `b.ts` and running `npm install`"

    def test_the_same_again_counts_and_another_error_is_another_failure(self):
        found = failures(
            tools(
                ("Bash", "command", "make", "error at line 1"),
                ("Bash", "command", "make", "error at line 2"),
                ("Bash", "command", "make", "no space left"),
                ("Bash", "command", "make"),
            )
        )
        assert [(one.tool.error, one.times) for one in found] == [
            ("error at line 1", 2),
            ("no space left", 1),
        ]
        assert all(one.fixed for one in found)

    def test_another_command_that_works_is_told(self):
        [failure] = failures(
            tools(
                ("Bash", "command", "tsc src/*.ts", "TS1"), ("Bash", "command", "npx tsc --noEmit")
            )
        )
        assert what_followed(failure) == "with `npx tsc --noEmit`"

    def test_what_never_worked_again_says_nothing(self):
        [failure] = failures(tools(("Bash", "command", "make", "boom"), ("Edit", "edit", "a")))
        assert failure.fixed is None
        assert what_followed(failure) == ""

    def test_what_works_only_much_later_is_no_answer(self):
        uses = [
            ("Bash", "command", "make", "boom"),
            *[("Read", "read", f"/f{n}") for n in range(100)],
        ]
        [failure] = failures(tools(*uses, ("Bash", "command", "make")))
        assert failure.fixed is None

    def test_an_edit_is_followed_by_its_file_alone(self):
        [failure] = failures(
            tools(
                ("Edit", "edit", "/a.py", "String to replace not found"),
                ("Edit", "edit", "/b.py"),
                ("Read", "read", "/a.py"),
                ("Edit", "edit", "/a.py"),
            )
        )
        assert what_followed(failure) == "after reading it again"

    def test_finding_nothing_and_being_stopped_are_no_failures(self):
        for command, error in [
            ("grep x a", "Exit code 1"),
            ("git diff | grep y", "(no output)"),
            ("make", "[Request interrupted by user for tool use]"),
            ("make", "The user doesn't want to proceed with this tool use."),
            ("make", "Command aborted"),
        ]:
            assert not is_failure(tools(("Bash", "command", command, error))[0])

    def test_a_search_that_says_what_is_wrong_is_one(self):
        assert is_failure(
            tools(("Bash", "command", "grep x a", "grep: a: No such file or directory"))[0]
        )


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Stored]:
    stored = Stored(tmp_path / "store.db")
    yield stored
    stored.close()


class TestPatterns:
    def find(self, stored: Stored, **wanted: object) -> object:
        return find_habits(conversation_steps(stored.store, EVERYTHING._replace(**wanted)))

    def test_failing_commands_are_told_with_what_helped(self, stored):
        for number in range(2):
            stored.add(
                *talk("a"),
                ("Bash", "command", "npm test", f"Exit code 1: {number} failed"),
                ("Edit", "edit", "/srv/agent/a.ts"),
                ("Bash", "command", "npm test"),
                ("Bash", "command", "ls"),
            )
        [failing] = self.find(stored).commands
        assert failing._replace(session="", number=0) == FailingCommand(
            "npm test", 4, 2, 2, [("Exit code 1: 1 failed", 2)], [("after editing `a.ts`", 2)]
        )
        assert failing.session.startswith("session-")

    def test_files_that_are_changed_for_the_same_request_are_told(self, stored):
        for _ in range(3):
            stored.add(
                "go", ("Edit", "edit", "/a"), ("Edit", "edit", "/b"), "and", ("Edit", "edit", "/a")
            )
        assert self.find(stored).together == [FilePair("/a", "/b", 3, 6, 3)]

    def test_other_groups_and_projects_are_left_out(self, stored):
        stored.add("go", ("Bash", "command", "make", "boom"), home="mine")
        stored.add("go", ("Bash", "command", "make", "bang"), home="other")
        stored.store.visible = ("mine",)
        [failing] = self.find(stored).commands
        assert failing.errors == [("boom", 1)]
        assert self.find(stored, project="elsewhere").conversations == 0


class TestSeenErrors:
    def find(self, stored: Stored, text: str, **wanted: object) -> list[tuple[int, str]]:
        query = ErrorQuery(text)
        everywhere = conversation_steps(
            stored.store, EVERYTHING._replace(**wanted), failing=query.similarity
        )
        return [(one.conversation.id, one.solved) for one in matching_errors(query, everywhere)]

    def test_an_error_is_found_again_with_what_solved_it(self, stored):
        one = stored.add(
            "go",
            (
                "Bash",
                "command",
                "make dist",
                "make: *** No rule to make target '/srv/a/dist'.  Stop.",
            ),
            ("Edit", "edit", "/srv/agent/Makefile"),
            ("Bash", "command", "make dist"),
        )
        stored.add("go", ("Bash", "command", "npm test", "1 failed"))
        assert self.find(stored, "make: *** No rule to make target '/other/dist'.  Stop.") == [
            (one, "after editing `Makefile`")
        ]

    def test_of_several_the_solved_and_then_the_latest_come_first(self, stored):
        unsolved = stored.add(
            "go", ("Bash", "command", "make", "boom went the build"), at=START + 9 * HOUR
        )
        solved = stored.add(
            "go", ("Bash", "command", "make", "boom went the build"), ("Bash", "command", "make")
        )
        older = stored.add(
            "go", ("Bash", "command", "make", "boom went the build"), at=START + HOUR
        )
        assert [id for id, _ in self.find(stored, "boom went the build")] == [
            solved,
            unsolved,
            older,
        ]

    def test_any_line_of_what_is_pasted_may_fit(self, stored):
        one = stored.add(
            "go", ("Bash", "command", "python a.py", "ModuleNotFoundError: No module named 'yaml'")
        )
        trace = "Traceback (most recent call last):\n  File \"b.py\", line 3\nModuleNotFoundError: No module named 'yaml'"
        assert self.find(stored, trace) == [(one, "")]

    def test_errors_of_other_groups_are_not_seen(self, stored):
        stored.add("go", ("Bash", "command", "make", "boom went the build"), home="other")
        stored.store.visible = ("mine",)
        assert self.find(stored, "boom went the build") == []


def test_the_shells_of_all_runtimes_are_one_tool(tmp_path: Path) -> None:
    stored = Stored(tmp_path / "memory.db")
    for name in ("Bash", "exec_command", "shell_command", "run_shell_command"):
        stored.add(
            "hello", ("Read", "read", "a.py"), (name, "command", "make"), "> done", name=name
        )
    counted = {
        one.tools: one.times
        for one in find_habits(conversation_steps(stored.store, Filter(limit=99))).tools
    }
    assert counted == {("Bash",): 4, ("Read",): 4}
    stored.close()
