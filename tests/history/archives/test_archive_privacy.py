"""Archives of excluded sessions: private and unlisted, and back when the rule is gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from archives_scene import ARCHIVED, MONDAY
from records import NamedHome, append, exchange

from session_memory.common.system.files import open_private
from session_memory.history.archives import writer
from session_memory.history.archives.list import (
    PRIVATE_FOLDER,
    KnownArchives,
    facts_without_text,
    list_archives,
    visible_archives,
)
from session_memory.history.archives.writer import ArchiveSource, archive_transcript
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.settings.homes import Home, home_at
from session_memory.sessions.settings.privacy import Privacy


class Scene:
    """An agent home with the sessions main and mail, which are archived."""

    def __init__(self, root: Path) -> None:
        self.named = NamedHome(root / "agent")
        self.environ = {"HOME": str(root)}
        self.folder = self.named.root / "conversations"
        self.private = self.named.root / PRIVATE_FOLDER
        self.transcripts = {
            name: self.named.session(
                name, *exchange(f"words of {name}", "yes", at=MONDAY, cwd=f"/srv/{name}")
            )
            for name in ("main", "mail")
        }

    @property
    def home(self) -> Home:
        return home_at(
            str(self.named.root), self.environ, sessions_dir=str(self.named.sessions_dir)
        )

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.environ, self.home)

    def rules(self, text: str) -> None:
        (self.named.root / ".session-memory" / "config.yaml").write_text(text)

    def archive(self) -> list[str | None]:
        return [
            archive_transcript(
                ArchiveSource(
                    self.named.session_id(name), str(path), runtime("agent-sdk"), name=name
                ),
                str(self.folder),
                self.home.settings(),
                ARCHIVED,
                privacy=self.privacy,
            )
            for name, path in self.transcripts.items()
        ]

    def visible(self) -> list[str]:
        return sorted(
            facts["name"] for _, facts in visible_archives(str(self.folder), self.privacy)
        )


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path)


RULES = [
    "sessions: {mail: {ignore: true}}\n",
    'sessions: {"words of mail": {text: false}}\n',
    "projects: {/srv/mail: {ignore: true}}\n",
]


@pytest.mark.parametrize("rule", RULES)
def test_an_archive_is_hidden_by_a_rule_and_back_without_it(scene, rule):
    scene.archive()
    before = sorted(path.name for path in scene.folder.glob("*.md"))
    scene.rules(rule)
    assert scene.visible() == ["main"]
    assert [path.name for path in scene.folder.glob("*.md")] == ["2026-09-21-words-of-main.md"]
    assert [path.name for path in scene.private.glob("*.md")] == ["2026-09-21-words-of-mail.md"]
    assert scene.private.stat().st_mode & 0o777 == 0o700
    scene.rules("sessions: {}\n")
    assert scene.visible() == ["mail", "main"]
    assert sorted(path.name for path in scene.folder.glob("*.md")) == before


@pytest.mark.parametrize("rule", RULES)
def test_the_archive_of_what_is_excluded_already_is_written_there(scene, rule):
    scene.rules(rule)
    _, path = scene.archive()
    assert Path(path).parent == scene.private
    assert Path(path).is_file()
    append(scene.transcripts["mail"], *exchange("and more", "yes", at=MONDAY + 9))
    assert scene.archive()[1] == path
    assert "and more" in Path(path).read_text()
    assert len(list(list_archives(str(scene.folder)))) == 1
    scene.rules("sessions: {}\n")
    assert Path(scene.archive()[1]).parent == scene.folder
    assert list(scene.private.glob("*.md")) == []


def test_of_one_without_text_who_when_and_how_much_is_listed(scene):
    scene.archive()
    scene.rules("sessions: {mail: {text: false}}\n")
    (facts,) = facts_without_text(str(scene.folder), scene.privacy)
    assert (facts["title"], facts["messages"]) == ("mail", 2)
    scene.rules("sessions: {mail: {ignore: true}}\n")
    assert facts_without_text(str(scene.folder), scene.privacy) == []


def test_without_rules_there_is_no_private_folder(scene):
    scene.archive()
    assert scene.visible() == ["mail", "main"]
    assert not scene.private.exists()


def test_a_link_in_the_place_of_the_private_folder_gets_nothing_and_shows_nothing(scene, tmp_path):
    scene.archive()
    scene.rules(RULES[0])
    (tmp_path / "elsewhere").mkdir()
    scene.private.symlink_to(tmp_path / "elsewhere")
    assert scene.visible() == ["main"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("rule", RULES)
def test_what_is_excluded_is_never_written_in_the_open_folder(scene, rule, monkeypatch):
    made: list[str] = []

    def recorded(path: str, flags: int) -> int:
        made.append(os.path.realpath(os.path.dirname(path)))
        return open_private(path, flags)

    monkeypatch.setattr(writer, "open_private", recorded)
    scene.rules(rule)
    scene.archive()
    assert made[-2:] == [str(scene.private)] * 2
    assert not list(scene.named.root.rglob("*.tmp*"))


def test_a_run_over_many_sessions_finds_each_archive_as_it_is(scene):
    known, mail = KnownArchives(), scene.named.session_id("mail")
    assert known.find(str(scene.named.root), mail) is None
    scene.archive()
    (path, before) = known.find(str(scene.folder), mail)
    append(scene.transcripts["mail"], *exchange("and more", "yes", at=MONDAY + 9))
    scene.archive()
    assert known.find(str(scene.folder), mail)[1]["messages"] == before["messages"] + 2
    os.rename(path, scene.folder / "other.md")
    assert known.find(str(scene.folder), mail)[0] == str(scene.folder / "other.md")
