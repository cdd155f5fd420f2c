"""The runtime of another package passes the conformance suite, and the suite says what is wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jsonschema
import pytest
from outside_scene import PACKAGE, forget_package

from session_memory.extras.conformance._expected import SCHEMA_FILE, read_expected
from session_memory.extras.conformance.cases import TestCases
from session_memory.extras.conformance.fixture import Fixture, check_story, fixture_of
from session_memory.extras.conformance.runtimes import TestHooks, TestInstall, TestSessions
from session_memory.extras.conformance.transcripts import (
    TestDamage,
    TestDelivery,
    TestEntries,
    TestFilters,
    TestForks,
    TestResults,
    TestRewritten,
    TestTitles,
    TestTurns,
    TestUsage,
)

__all__ = [
    "TestCases",
    "TestDamage",
    "TestDelivery",
    "TestEntries",
    "TestFilters",
    "TestForks",
    "TestHooks",
    "TestInstall",
    "TestResults",
    "TestRewritten",
    "TestSessions",
    "TestTitles",
    "TestTurns",
    "TestUsage",
]
FIXTURE = PACKAGE / "fixture"
EXPECTED = [
    FIXTURE / "expected.json",
    *sorted(Path(__file__).parent.glob("fixtures/*/expected.json")),
]


@pytest.fixture
def fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    forget_package()
    monkeypatch.syspath_prepend(str(PACKAGE))
    __import__("anvil_runtime")
    runtime = sys.modules["anvil_runtime"].RUNTIME
    return fixture_of(runtime, FIXTURE, tmp_path, monkeypatch)


@pytest.mark.parametrize("path", EXPECTED, ids=lambda path: path.parent.name)
def test_every_expected_json_has_the_form_that_the_schema_describes(path: Path) -> None:
    schema = json.loads(SCHEMA_FILE.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(path.read_text()), schema)
    assert read_expected(path) == json.loads(path.read_text())


def test_the_example_of_the_schema_is_the_fixture_of_the_outside_runtime() -> None:
    [example] = json.loads(SCHEMA_FILE.read_text())["examples"]
    assert example == read_expected(FIXTURE / "expected.json")


def test_a_wrong_key_is_named_with_what_it_should_be(tmp_path: Path) -> None:
    expected = read_expected(FIXTURE / "expected.json")
    del expected["cwd"]
    path = tmp_path / "expected.json"
    path.write_text(json.dumps({**expected, "usage": 7, "fork_copies": 1, "colour": "red"}))
    with pytest.raises(ValueError, match=r"expected\.json") as caught:
        read_expected(path)
    assert f"{caught.value}".splitlines()[1:-1] == [
        "- cwd is missing. It should be a text: the directory in which the session started",
        "- usage is 7. It should be an array or null: the model, and the input, output and cached "
        "tokens, of the one answer that states them; null if the transcripts have no counts",
        '- fork_copies is 1. It should be true or false or "unmarked": whether fork.jsonl has the '
        "first turn as marked copies (true, the default), does not have it (false), or has it with "
        'the same ids and no mark ("unmarked")',
        "- colour is not a key",
    ]


def test_a_hook_s_event_that_is_not_recognised_says_what_to_add(
    fixture: Fixture, tmp_path: Path
) -> None:
    """Anvil recognises an event without a path by a variable."""
    expected = {key: value for key, value in fixture.own.items() if key != "environ"}
    without = fixture._replace(own=expected)
    with pytest.raises(
        AssertionError, match="expected that is_own recognises the event by another"
    ):
        TestCases().test_a_hook_without_a_transcript_path_finds_its_session(without, tmp_path)


def test_a_directory_that_is_not_found_in_another_file_says_so(
    fixture: Fixture, tmp_path: Path
) -> None:
    folder = tmp_path / "fixture/cases/directory-elsewhere/sessions/-srv-other"
    folder.mkdir(parents=True)
    (folder / "one.jsonl").write_bytes(fixture.path("cases/behind-texts.jsonl").read_bytes())
    elsewhere = fixture._replace(folder=tmp_path / "fixture")
    with pytest.raises(AssertionError, match="expected one session of /srv/site, found 0"):
        TestCases().test_a_directory_in_another_file_is_the_session_s(elsewhere, tmp_path)


def test_a_failure_names_the_line_and_what_was_expected(fixture: Fixture) -> None:
    path = fixture.path("cases/behind-texts.jsonl")
    entries = fixture.conversation(path)
    with pytest.raises(pytest.fail.Exception) as caught:
        check_story(path, entries, [("user", "How do I deploy this?"), ("assistant", "Done.")])
    assert caught.value.msg == (
        "behind-texts.jsonl, line 3: expected ('assistant', 'Done.'), read ('assistant', 'Deployed.')"
    )
    with pytest.raises(pytest.fail.Exception, match="line 3: expected nothing more"):
        check_story(path, entries, [("user", "How do I deploy this?")])
    story = [("user", "How do I deploy this?"), ("assistant", "Deployed."), ("user", "Go on.")]
    with pytest.raises(pytest.fail.Exception, match=r"expected \('user', 'Go on.'\) after line 3"):
        check_story(path, entries, story)
