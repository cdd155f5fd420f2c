"""The page offers the command that resumes a session only if it works, else the one to restore it."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest
from kept_scene import KeptUser, delete
from page_scene import ServedPage
from records import exchange


def test_a_deleted_session_can_be_restored_if_it_is_kept_and_else_offers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = KeptUser(tmp_path, monkeypatch)
    paths = [
        person.talk(name, *exchange("one?", "Two.", cwd=str(tmp_path)))
        for name in ("there", "kept")
    ]
    person.keep()
    person.config("keep: text\n")
    paths.append(person.talk("lost", *exchange("one?", "Two.", cwd=str(tmp_path))))
    person.keep()
    for path in paths[1:]:
        delete(path)
    person.keep()
    with ServedPage(person) as page:
        page.until("Two", "/session/there")
        assert "claude --resume there" in unescape(page.view("/session/there").text)
        assert "session-memory restore kept" in unescape(page.view("/session/kept").text)
        assert "claude --resume" not in page.view("/session/kept").text
        assert "claude --resume" not in page.view("/session/lost").text
        assert "session-memory restore" not in page.view("/session/lost").text
        text = page.view("/timeline").text
        assert "Deleted by Claude Code after 30 days" in text
        assert "to keep transcripts too, so sessions can be resumed" in text
