"""Archives of one run share what they read of the transcripts beside them, and are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from archives_scene import ARCHIVED, MONDAY, titled
from hooks_scene import PlainUser
from records import exchange

from session_memory.common.system.files import Opened
from session_memory.history.archives import _beginnings, due
from session_memory.history.archives.list import KnownArchives
from session_memory.history.archives.writer import ArchiveSource, archive_transcript
from session_memory.history.store.location import find_location
from session_memory.sessions.runtimes.table import all_runtimes, runtime
from session_memory.sessions.settings.homes import person_home
from session_memory.sessions.settings.privacy import Privacy
from session_memory.sessions.settings.registry import agent_home
from session_memory.sessions.transcripts import gate

OTHERS = 12


@pytest.fixture
def transcripts(plain: PlainUser) -> list[Path]:
    """A session, a fork of it, and others; a rule hides the first by its title."""
    secret = exchange("secret words", "yes", at=MONDAY)
    return [
        plain.session(*secret, titled("Secret plans")),
        plain.session(*secret, *exchange("go on", "gone", at=MONDAY + 60), titled("Fork")),
        *[
            plain.session(*exchange(f"words {number}", "yes", at=MONDAY))
            for number in range(OTHERS)
        ],
    ]


def archived(
    plain: PlainUser, transcripts: list[Path], known: Callable[[], KnownArchives]
) -> dict[str, str]:
    """Archive sessions in a new folder; return the text of each archive, by its place."""
    home = person_home({"HOME": str(plain.root)})
    privacy = Privacy({"HOME": str(plain.root)}, home)
    place = plain.root / f"archives-{len(list(plain.root.iterdir()))}"
    for path in transcripts:
        source = ArchiveSource(path.stem, str(path), runtime("agent-sdk"))
        folder, settings = str(place / "conversations"), home.settings()
        assert archive_transcript(
            source, folder, settings, ARCHIVED, privacy=privacy, known=known()
        )
    return {path.relative_to(place).as_posix(): path.read_text() for path in place.rglob("*.md")}


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "sessions: {Secret plans: {ignore: true}}\n",
        "sessions: {HIDDEN: {ignore: true}}\n",
        "sessions: {HIDDEN: {text: false}}\n",
    ],
)
@pytest.mark.parametrize("most_bytes", [_beginnings._MOST_BYTES, 0])
def test_archives_are_the_same_however_many_a_run_writes(
    plain: PlainUser,
    transcripts: list[Path],
    rule: str,
    most_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_beginnings, "_MOST_BYTES", most_bytes)
    plain.config(rule.replace("HIDDEN", transcripts[0].stem))
    shared = KnownArchives()
    texts = archived(plain, transcripts, lambda: shared)
    assert texts == archived(plain, transcripts, KnownArchives)
    assert len(texts) == OTHERS + 2
    private = [name for name in texts if name.startswith(".")]
    assert len(private) == (2 if rule else 0), "the fork has words of the hidden session"
    assert sum(transcripts[0].stem in text for text in texts.values()) == 2


def test_a_run_opens_a_transcript_as_often_whatever_is_beside_it(
    plain: PlainUser, transcripts: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: Counter[str] = Counter()

    class Counted(Opened):
        def __init__(self, path: str) -> None:
            opened[path] += 1
            super().__init__(path)

    monkeypatch.setattr(gate, "Opened", Counted)
    monkeypatch.setattr(_beginnings, "Opened", Counted)
    shared = KnownArchives()
    archived(plain, transcripts[2:4], lambda: shared)
    with_few = opened[str(transcripts[2])]
    opened.clear()
    shared = KnownArchives()
    archived(plain, transcripts, lambda: shared)
    assert opened[str(transcripts[2])] == with_few


def test_a_run_looks_for_an_agent_home_once_above_each_directory(
    plain: PlainUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()

    def counted(directory: str, *given: object, **named: str) -> object:
        asked[directory] += 1
        return agent_home(directory, *given, **named)

    monkeypatch.setattr(due, "agent_home", counted)
    plain.session(*exchange("hello", "hi", at=MONDAY))
    location = find_location(str(plain.place), {"HOME": str(plain.root)})
    is_elsewhere = due.archived_elsewhere(location)
    answers = [is_elsewhere(directory) for directory in ("/srv/shop", "/srv/web") * 5]
    assert answers == [False] * 10
    folders = {runtime.SESSIONS_FOLDER for runtime in all_runtimes()}
    assert len(folders) <= asked["/srv/shop"] <= len(all_runtimes())
