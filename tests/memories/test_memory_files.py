"""Memories as pages of Markdown: what is kept where, what a person does to it, and what the untrusted say."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from memory_scene import DAY, EXPIRY, FEBRUARY, Desk, conversation, fact

from session_memory.activity import prompt_memories
from session_memory.memories import forgotten, format, pages
from session_memory.memories.format import Origin, PageMemory
from session_memory.memories.strategy import Memory
from session_memory.store.sqlite.memory_index import IndexedMemory
from session_memory.store.values import Conversation


class TestPages:
    def test_a_fact_is_a_readable_item_with_its_quote_and_where_it_came_from(self, desk: Desk) -> None:
        (id,) = desk.keep(EXPIRY)
        assert desk.page("facts.md").read_text() == (
            "# Facts\n\n"
            f"## The JWT expiry of the login service is 3600 seconds ^{id}\n\n"
            "> expiry set to 3600\n\n"
            "*About auth*\n"
            "*From 2026-02-21 14:32:05 UTC, session d58a79a7-1111-4222-8333-abcdefabcdef, conversation 12, by summary*\n"
        )

    @pytest.mark.parametrize(
        ("memory", "path"),
        [
            (Memory("project", "Shop", "A web shop.", "The Shop"), "projects/the-shop.md"),
            (Memory("person", "Ada", "Runs the shop.", "Ada L."), "people/ada-l.md"),
            (Memory("decision", "No Redis", "Serverless."), "decisions.md"),
            (Memory("preference", "Tabs", ""), "preferences.md"),
            (Memory("question", "Which port?", ""), "questions.md"),
            (Memory("solution", "Timeout", "A larger pool."), "solutions.md"),
            (Memory("project", "../../etc", "", "../../etc"), "projects/etc.md"),
            (Memory("person", "…", "", "…"), None),
        ],
    )
    def test_each_kind_has_its_page(self, desk: Desk, memory: Memory, path: str | None) -> None:
        desk.keep(memory)
        (found,) = desk.content()
        assert found == path or (path is None and found.startswith("people/") and found.endswith(".md"))

    def test_episodes_lie_by_the_day_on_which_they_ended(self, desk: Desk) -> None:
        desk.keep(Memory("episode", "Login", "Fixed it."))
        desk.keep(Memory("episode", "Login", "Fixed it."), of=conversation(13, FEBRUARY + 2 * DAY))
        assert sorted(desk.content()) == ["episodes/2026-02-21.md", "episodes/2026-02-23.md"]

    def test_pages_are_for_this_user_alone(self, desk: Desk) -> None:
        desk.keep(EXPIRY)
        assert stat.S_IMODE(desk.page("facts.md").stat().st_mode) == 0o600
        assert stat.S_IMODE(desk.directory.stat().st_mode) == 0o700

    def test_secrets_are_redacted_wherever_they_stand(self, desk: Desk) -> None:
        secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        desk.keep(Memory("fact", f"Token {secret}", f"Use {secret}", f"s {secret}", f"q {secret}"))
        assert secret not in "".join(desk.content().values())
        assert secret not in str(desk.all())
        assert secret.encode() not in (desk.directory / prompt_memories.FILE).read_bytes()

    def test_text_that_looks_like_an_item_makes_none(self, desk: Desk) -> None:
        text = "Before\n## Another ^aaaaaaaaaa\n> a quote\n*From nowhere*\n```\n## code ^bbbbbbbbbb\n"
        (id,) = desk.keep(Memory("solution", "A ^cccccccccc ~~title~~ <b>", text, "x*\n*From y*", "one\n## two"))
        (kept,) = desk.all()
        assert kept.id == id
        assert kept.title == "A ^cccccccccc ~~title~~ <b>"
        assert kept.subject == "x* *From y*"
        assert "<b>" not in desk.page("solutions.md").read_text().replace("\\<b>", "")
        assert [line.strip() for line in kept.text.splitlines()] == [line.strip() for line in text.strip().splitlines()]
        assert kept.superseded == ""

    @settings(deadline=None)
    @given(st.text(min_size=1, max_size=200), st.text(max_size=300), st.text(max_size=60), st.text(max_size=100))
    @example("0", "", "*", "")
    def test_whatever_is_kept_is_read_again_as_one_memory(
        self, title: str, text: str, subject: str, quote: str
    ) -> None:
        made = format.new_memory(
            "fact", title, text, subject, quote, Origin(FEBRUARY, "s", 1, "summary"), is_untrusted=False
        )
        if not made.title:
            return
        head, *parts = format.split("# Facts\n\n" + format.render(made))
        assert (head, len(parts)) == ("# Facts\n\n", 1)
        again = format.parse(parts[0], "fact", is_untrusted=False)
        assert (again.id, again.superseded, again.origins) == (made.id, "", made.origins)
        assert again.title == made.title
        assert again.text.split() == made.text.split()
        assert again.quote.split() == made.quote.split()
        assert again.subject == made.subject


class TestUntrusted:
    @pytest.fixture
    def stranger(self, desk: Desk) -> Conversation:
        desk.untrusted.add("stranger")
        return conversation(30, FEBRUARY + DAY, session_id="stranger")

    def test_what_untrusted_sessions_say_is_kept_apart_and_labelled(self, desk: Desk, stranger: Conversation) -> None:
        desk.keep(EXPIRY, of=stranger)
        assert list(desk.content()) == ["untrusted/facts.md"]
        assert "*From sessions that are marked untrusted" in desk.page("untrusted/facts.md").read_text()
        assert [memory.is_untrusted for memory in desk.all()] == [True]

    def test_it_supersedes_nothing_and_is_never_injected(self, desk: Desk, stranger: Conversation) -> None:
        (id,) = desk.keep(EXPIRY)
        newer = fact("The JWT expiry of the login service is 7200 seconds", replaces=(id,))
        desk.keep(newer, of=stranger)
        assert [memory.superseded for memory in desk.all()] == ["", ""]
        told = prompt_memories.relevant(str(desk.directory), "What is the JWT expiry of the login service?", 500)
        assert "3600" in told
        assert "7200" not in told

    def test_it_is_shown_nothing_that_trusted_sessions_said(self, desk: Desk, stranger: Conversation) -> None:
        desk.keep(EXPIRY)
        text = "the JWT expiry of the login service is 3600 seconds"
        assert [one.text for one in desk.keeper.known(conversation(), text, 5)] == [EXPIRY.title]
        assert desk.keeper.known(stranger, text, 5) == []


class TestPerson:
    def test_an_edit_is_searched_and_never_undone(self, desk: Desk) -> None:
        (id,) = desk.keep(EXPIRY)
        desk.edit("facts.md", "is 3600 seconds", "is one hour, says Ada")
        desk.refresh()
        assert desk.found("Ada") == ["The JWT expiry of the login service is one hour, says Ada"]
        assert desk.keep(EXPIRY) == [id]
        assert "one hour, says Ada" in desk.page("facts.md").read_text()
        assert len(desk.all()) == 1

    def test_a_note_of_their_own_is_found_and_left_as_it_is(self, desk: Desk) -> None:
        desk.keep(EXPIRY)
        note = "\n## Ask Ada about the port\r\n\r\nShe knows.\r\n"
        with desk.page("facts.md").open("a", newline="") as file:
            file.write(note)
        desk.refresh()
        assert desk.found("Ada") == ["Ask Ada about the port"]
        desk.keep(fact("Something else"))
        assert "## Ask Ada about the port\n\nShe knows.\n" in desk.page("facts.md").read_text()

    def test_a_secret_that_they_wrote_down_stays_on_the_page_alone(self, desk: Desk) -> None:
        desk.keep(EXPIRY)
        secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        with desk.page("facts.md").open("a") as file:
            file.write(f"\n## My token\n\nIt is {secret}\n")
        desk.refresh()
        assert desk.found("token") == ["My token"]
        assert secret not in str(desk.all())
        assert secret.encode() not in (desk.directory / prompt_memories.FILE).read_bytes()

    def test_bytes_that_are_no_text_are_left_as_they_are(self, desk: Desk) -> None:
        desk.keep(EXPIRY)
        with desk.page("facts.md").open("ab") as file:
            file.write(b"\n## Caf\xe9 \xff\n")
        desk.refresh()
        desk.keep(fact("Something else"))
        assert b"\n## Caf\xe9 \xff\n" in desk.page("facts.md").read_bytes()

    def test_an_item_that_they_delete_is_forgotten(self, desk: Desk) -> None:
        desk.keep(EXPIRY, fact("Something else"))
        desk.refresh()
        parts = format.split(desk.page("facts.md").read_text())
        desk.page("facts.md").write_text(parts[0] + parts[2])
        desk.refresh()
        assert [memory.title for memory in desk.all()] == ["Something else"]
        assert desk.keep(EXPIRY) == []
        assert "3600" not in desk.page("facts.md").read_text()

    def test_a_page_that_is_just_being_written_forgets_nothing_yet(self, desk: Desk) -> None:
        (id,) = desk.keep(EXPIRY)
        desk.refresh()
        text = desk.page("facts.md").read_text()
        desk.page("facts.md").write_text("")
        os.utime(desk.page("facts.md"), (time.time() + 60, time.time() + 60))  # however slow this machine is
        desk.library().refresh()
        assert desk.all() == []
        desk.page("facts.md").write_text(text)
        desk.refresh()
        assert [memory.id for memory in desk.all()] == [id]
        assert forgotten.read(str(desk.directory)) == []

    def test_a_page_that_they_delete_is_forgotten_whole(self, desk: Desk) -> None:
        desk.keep(EXPIRY, Memory("person", "Ada", "Runs the shop.", "Ada"))
        desk.refresh()
        desk.page("people/ada.md").unlink()
        desk.refresh()
        assert [memory.kind for memory in desk.all()] == ["fact"]
        assert desk.keep(Memory("person", "Ada", "Runs the shop.", "Ada")) == []

    def test_a_directory_that_was_moved_away_is_not_forgotten(self, desk: Desk) -> None:
        (id,) = desk.keep(EXPIRY)
        desk.refresh()
        desk.directory.rename(desk.directory.parent / "elsewhere")
        desk.library().refresh()
        assert desk.all() == []
        (desk.directory / ".lock").unlink()
        (desk.directory / prompt_memories.FILE).unlink()
        desk.directory.rmdir()
        (desk.directory.parent / "elsewhere").rename(desk.directory)
        desk.refresh()
        assert [memory.id for memory in desk.all()] == [id]

    def test_an_item_may_be_moved_to_another_page(self, desk: Desk) -> None:
        (id,) = desk.keep(EXPIRY)
        desk.refresh()
        parts = format.split(desk.page("facts.md").read_text())
        desk.page("facts.md").write_text(parts[0])
        desk.page("decisions.md").write_text("# Decisions\n\n" + parts[1])
        desk.refresh()
        assert [(memory.id, memory.path) for memory in desk.all()] == [(id, "decisions.md")]
        assert forgotten.read(str(desk.directory)) == []

    def test_a_page_that_is_edited_while_we_write_is_read_again(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        desk.keep(EXPIRY)
        write = pages.write
        edits = iter(["Ada was here"])

        def edited_first(directory: str, page: pages.Page) -> None:
            for edit in edits:
                with desk.page("facts.md").open("a") as file:
                    file.write(f"\n## {edit}\n")
            write(directory, page)

        monkeypatch.setattr(pages, "write", edited_first)
        desk.keep(fact("Something else"))
        text = desk.page("facts.md").read_text()
        assert "## Ada was here\n" in text
        assert "## Something else ^" in text
        assert text.count("3600 seconds") == 1

    def test_a_link_in_place_of_a_page_is_not_followed(self, desk: Desk, tmp_path: Path) -> None:
        (tmp_path / "secret.md").write_text("## Secret plans\n")
        desk.directory.mkdir()
        desk.page("facts.md").symlink_to(tmp_path / "secret.md")
        desk.library().refresh()
        assert desk.all() == []
        with pytest.raises(OSError, match=r"facts\.md"):
            desk.keep(EXPIRY)
        assert (tmp_path / "secret.md").read_text() == "## Secret plans\n"


def test_an_item_made_of_nothing_is_not_kept(desk: Desk) -> None:
    assert desk.keep(Memory("fact", " \u200b ", "\x00"), Memory("fact", "", "Only a text")) != []
    (kept,) = desk.all()
    assert isinstance(kept, IndexedMemory)
    assert (kept.title, kept.text) == ("Only a text", "")
    assert PageMemory("x", "fact", "t").at is None
    assert json.dumps(kept.origins)
