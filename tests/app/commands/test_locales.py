"""Commands read and print UTF-8 names even in another locale."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from git_scene import repository
from records import assistant, user
from store_scene import COMMAND, StoreUser

NAME = "prüfung-日本"
ASCII = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
# What it prints, in ASCII where the locale has no other characters.
CALLS = {
    "handoff one": "## Task",
    "why ä.py:1": "asked: ",
    "search bitte --project .": "pr?fung-??",
    "archive --all": "1 conversation kept.",
    "host init hö": "main",
    "export one --out ö.md": "1 conversation in ",
    "sessions --json": "pr\\u00fcfung-\\u65e5\\u672c",
}


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> tuple[StoreUser, Path]:
    person = StoreUser(tmp_path_factory.mktemp("home"))
    root = repository(person.home / NAME, **{"ä.py": "total = price\n"})
    edit = {
        "file_path": f"{root}/ä.py",
        "old_string": "total = price",
        "new_string": "total = price * tax_rate",
    }
    said = (
        user("bitte prüfen", cwd=str(root)),
        assistant(("Edit", edit), cwd=str(root)),
        assistant("fertig", cwd=str(root)),
    )
    person.session("one", *said, project=f"-{NAME}")
    (root / "ä.py").write_text("total = price * tax_rate\n")
    return person, root


@pytest.mark.parametrize("line", CALLS)
def test_a_command_works_with_names_that_the_locale_lacks(
    person: tuple[StoreUser, Path], line: str
) -> None:
    user, root = person
    done = user.run_process(*line.split(), cwd=root, **ASCII)
    assert (done.returncode, "Traceback" in done.stderr, CALLS[line] in done.stdout) == (
        0,
        False,
        True,
    ), done
    assert done.stdout.isascii()


def test_a_terminal_in_latin_1_gets_and_types_its_own_characters(
    person: tuple[StoreUser, Path], tmp_path: Path
) -> None:
    user, root = person
    made = tmp_path / "de_DE.ISO-8859-1"
    words = ["localedef", "-i", "de_DE", "-f", "ISO-8859-1", str(made)]
    if (
        not shutil.which("localedef")
        or subprocess.run(words, capture_output=True, check=False).returncode
    ):
        pytest.skip("localedef cannot make a Latin-1 locale here")
    environ = {**user.environment, **ASCII, "LC_ALL": made.name, "LOCPATH": str(tmp_path)}
    command = [sys.executable, "-c", COMMAND, "search", "prüfen".encode("latin-1")]
    done = subprocess.run(command, env=environ, cwd=root, capture_output=True, check=False)
    assert "bitte **prüfen**".encode("latin-1") in done.stdout, done
