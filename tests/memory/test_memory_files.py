"""Memories as pages of Markdown: their places, a person's edits, and untrusted sessions."""

from __future__ import annotations

import json
import os
import stat
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from memories_scene import (
    DAY,
    EXPIRY,
    FEBRUARY,
    MemoryDirectory,
    conversation,
    fact,
    told_with_prompt,
)
from share import some

from session_memory.history.store.values import Conversation
from session_memory.memory import forgotten, format, pages
from session_memory.memory.memory_index import IndexedMemory, Origin
from session_memory.memory.prompt_index_reader import PROMPT_INDEX
from session_memory.memory.strategy import Memory


class TestPages:
    def test_a_fact_is_a_readable_item_with_its_quote_and_where_it_came_from(
        self, memory_dir: MemoryDirectory
    ) -> None:
        (id,) = memory_dir.keep(EXPIRY)
        assert memory_dir.page("facts.md").read_text() == (
            "# Facts\n\n"
            f"## The JWT expiry of the login service is 3600 seconds ^{id}\n\n"
            "> expiry set to 3600\n\n"
            "*About auth*\n"
            "*From 2026-02-21 14:32:05 UTC, session d58a79a7-1111-4222-8333-abcdefabcdef, conversation 12, by summary, in /srv/app*\n"
        )

    def test_each_kind_has_its_page_and_episodes_that_of_the_day_on_which_they_ended(
        self, memory_dir: MemoryDirectory
    ) -> None:
        memory_dir.keep(
            Memory("project", "Shop", "A web shop.", "The Shop"),
            Memory("person", "Ada", "Runs the shop.", "Ada L."),
            Memory("decision", "No Redis", "Serverless."),
            Memory("preference", "Tabs", ""),
            Memory("question", "Which port?", ""),
            Memory("solution", "Timeout", "A larger pool."),
            Memory("project", "../../etc", "", "../../etc"),
            Memory("episode", "Login", "Fixed it."),
        )
        memory_dir.keep(
            Memory("episode", "Login", "Fixed it."), of=conversation(13, FEBRUARY + 2 * DAY)
        )
        assert {
            path: memory.title
            for path in memory_dir.content()
            for memory in memory_dir.all(paths=(path,))
        } == {
            "projects/the-shop.md": "Shop",
            "people/ada-l.md": "Ada",
            "decisions.md": "No Redis",
            "preferences.md": "Tabs",
            "questions.md": "Which port?",
            "solutions.md": "Timeout",
            "projects/etc.md": "../../etc",
            "episodes/2026-02-21.md": "Login",
            "episodes/2026-02-23.md": "Login",
        }
        memory_dir.keep(Memory("person", "…", "", "…"))
        (nameless,) = [
            path
            for path in memory_dir.content()
            if path.startswith("people/") and "ada" not in path
        ]
        assert nameless.endswith(".md")

    def test_pages_are_for_this_user_alone(self, memory_dir: MemoryDirectory) -> None:
        memory_dir.keep(EXPIRY)
        assert stat.S_IMODE(memory_dir.page("facts.md").stat().st_mode) == 0o600
        assert stat.S_IMODE(memory_dir.directory.stat().st_mode) == 0o700

    def test_secrets_are_redacted_wherever_they_stand(self, memory_dir: MemoryDirectory) -> None:
        secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        memory_dir.keep(
            Memory("fact", f"Token {secret}", f"Use {secret}", f"s {secret}", f"q {secret}")
        )
        assert secret not in "".join(memory_dir.content().values())
        assert secret not in str(memory_dir.all())
        assert secret.encode() not in (memory_dir.directory / PROMPT_INDEX).read_bytes()

    def test_text_that_looks_like_an_item_makes_none(self, memory_dir: MemoryDirectory) -> None:
        text = (
            "Before\n## Another ^aaaaaaaaaa\n> a quote\n*From nowhere*\n```\n## code ^bbbbbbbbbb\n"
        )
        (id,) = memory_dir.keep(
            Memory("solution", "A ^cccccccccc ~~title~~ <b>", text, "x*\n*From y*", "one\n## two")
        )
        (kept,) = memory_dir.all()
        assert kept.id == id
        assert kept.title == "A ^cccccccccc ~~title~~ <b>"
        assert kept.subject == "x* *From y*"
        assert "<b>" not in memory_dir.page("solutions.md").read_text().replace("\\<b>", "")
        assert [line.strip() for line in kept.text.splitlines()] == [
            line.strip() for line in text.strip().splitlines()
        ]
        assert kept.superseded == ""

    @settings(max_examples=some(100, 30))
    @given(
        st.text(min_size=1, max_size=200),
        st.text(max_size=300),
        st.text(max_size=60),
        st.text(max_size=100),
    )
    @example("0", "", "*", "")
    def test_whatever_is_kept_is_read_again_as_one_memory(
        self, title: str, text: str, subject: str, quote: str
    ) -> None:
        made = format.new_memory(
            "fact",
            title,
            text,
            subject,
            quote,
            Origin(FEBRUARY, "s", 1, "summary"),
            is_untrusted=False,
        )
        if not made.title:
            return
        head, *parts = format.split("# Facts\n\n" + format.render(made))
        assert (head, len(parts)) == ("# Facts\n\n", 1)
        again = format.parse(parts[0], "facts.md", "fact", is_untrusted=False)
        assert (again.id, again.superseded, again.origins) == (made.id, "", made.origins)
        assert again.title == made.title
        assert again.text.split() == made.text.split()
        assert again.quote.split() == made.quote.split()
        assert again.subject == made.subject

    def test_a_page_of_before_that_names_no_message_is_read(
        self, memory_dir: MemoryDirectory
    ) -> None:
        memory_dir.keep(EXPIRY._replace(message=34, at=FEBRUARY))
        memory_dir.edit("facts.md", "conversation 12, message 34, by", "conversation 12, by")
        memory_dir.refresh()
        (kept,) = memory_dir.all()
        assert kept.origins == (
            (
                FEBRUARY // 1000 * 1000,
                "d58a79a7-1111-4222-8333-abcdefabcdef",
                12,
                "summary",
                0,
                "/srv/app",
            ),
        )

    def test_a_conversation_that_was_read_anew_is_no_other_origin(
        self, memory_dir: MemoryDirectory
    ) -> None:
        memory_dir.keep(EXPIRY)
        memory_dir.keep(EXPIRY, of=conversation(99))
        assert memory_dir.page("facts.md").read_text().count("*From ") == 1


# What a person may put into a page: Markdown, other scripts, marks of order, what some programs
# take for the end of a line.
_WRITTEN = st.sampled_from(
    [
        "my own words\n",
        "## An item of mine\nwith text\n",
        "# A section of mine\n\nand text\r\n",
        "---\ntags: [a, b]\n---\n",
        "\ufeff",
        "\u2028",
        "\x85",
        "\x0b\x0c",
        "\r",
        "\r\n\r\n",
        "\n\n\n",
        "  trailing blanks  \n",
        "naïve café 日本 👩‍👩‍👧 ‮abc\n",
        "```\n# code\n```\n",
        "*Superseded by my cat*\n",
        "> quoted\n",
        "~~",
        "^",
        "\x00",
        "no end of line",
        "\udcff",
    ]
) | st.text(max_size=20)
_EDITS = st.lists(st.tuples(st.floats(0, 1), _WRITTEN), max_size=5)
_RUNS = st.lists(
    st.sampled_from(["keep", "keep again", "contradict", "note", "forget and take back"]),
    min_size=1,
    max_size=4,
)
_PAGE = "facts.md"


class TestEditedByHand:
    """A page that a person edited keeps every byte of it, whatever is written to it later."""

    @settings(max_examples=some(40, 15))
    @given(_EDITS, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans(), _RUNS)
    @example(
        [(1.0, "# A section of mine\n\nand text\r\n")], "\n", False, False, ["forget and take back"]
    )
    @example([], "\r\n", True, True, ["keep again", "contradict", "keep"])
    @example([(0.5, "\r\n")], "\n", False, True, ["contradict", "forget and take back"])
    def test_what_is_there_stays(
        self,
        edits: list[tuple[float, str]],
        end: str,
        has_mark: bool,
        is_cut: bool,
        runs: list[str],
    ) -> None:
        with (
            TemporaryDirectory() as directory,
            closing(MemoryDirectory(Path(directory))) as memory_dir,
        ):
            ids = memory_dir.keep(
                EXPIRY,
                fact("The login service listens on port 8080", "auth"),
                fact("Tea is hot", ""),
            )
            page = memory_dir.page(_PAGE)
            text = page.read_text().rstrip("\n" if is_cut else "").replace("\n", end)
            for share, written in edits:
                at = round(share * len(text))
                text = text[:at] + written + text[at:]
            page.write_bytes(
                (f"\ufeff{text}" if has_mark else text).encode("utf-8", "surrogateescape")
            )
            for number, run in enumerate(runs):
                memory_dir.refresh()
                before = page.read_bytes()
                if run == "forget and take back":
                    there = [memory.id for memory in memory_dir.all() if memory.id == ids[2]]
                    memory_dir.library().forget(there, can_undo=True)
                    left = page.read_bytes()
                    assert is_within(left, before)
                    assert (
                        not there
                        or b"# A section of mine" not in before
                        or b"# A section of mine" in left
                    )
                    memory_dir.library().take_back(there)
                    assert not there or sorted(filter(None, lines(before))) == sorted(
                        filter(None, lines(page.read_bytes()))
                    )
                    continue
                if run == "note":
                    memory_dir.keep(fact(f"A thing noted {number}", "noted"), strategy="person")
                elif run == "contradict":
                    memory_dir.keep(
                        fact("The login service listens on port 9090", "auth"),
                        of=conversation(13, FEBRUARY + DAY),
                    )
                else:
                    other = (
                        EXPIRY if run == "keep again" else fact(f"Port {number} is open", "ports")
                    )
                    memory_dir.keep(
                        other,
                        of=conversation(20 + number, FEBRUARY + DAY, session_id=f"other-{number}"),
                    )
                assert is_within(before, page.read_bytes())

    def test_a_comment_in_fenced_code_begins_no_section(self) -> None:
        item, section = "## A ^abc\n\n```\n# code\n~~~\n# more\n````\n", "# A section of mine\n"
        assert format.split(f"mine\n{item}{section}## B ^abd\n") == [
            "mine\n",
            item,
            section,
            "## B ^abd\n",
        ]

    def test_lines_of_ours_end_as_those_of_the_page(self, memory_dir: MemoryDirectory) -> None:
        memory_dir.keep(EXPIRY)
        page = memory_dir.page(_PAGE)
        page.write_bytes(page.read_bytes().replace(b"\n", b"\r\n"))
        memory_dir.refresh()
        memory_dir.keep(
            EXPIRY,
            fact("Tea is hot", ""),
            of=conversation(13, FEBRUARY + DAY, session_id="another"),
        )
        assert page.read_bytes().count(b"\n") == page.read_bytes().count(b"\r\n")
        assert len(memory_dir.all()) == 2


def lines(content: bytes) -> list[bytes]:
    return [line.rstrip(b"\r") for line in content.split(b"\n")]


def is_within(some: bytes, whole: bytes) -> bool:
    """Tell whether `some` remains of `whole` if other bytes are taken out."""
    rest = iter(whole)
    return all(byte in rest for byte in some)


class TestDirectories:
    def test_a_page_names_the_directory_whatever_is_in_it(
        self, memory_dir: MemoryDirectory
    ) -> None:
        directories = [
            "/srv/app",
            "/srv/my app/*x*, in y",
            "C:\\Users\\Ada",
            "/srv/läden/日本 \n%41",
        ]
        for number, directory in enumerate(directories):
            memory_dir.keep(
                fact(f"It is {number}", f"s{number}"), of=conversation()._replace(cwd=directory)
            )
        named = [
            one
            for one in memory_dir.page("facts.md").read_text().split("\n")
            if one.startswith("*From")
        ]
        assert [line for line in named if " " in line.partition(", by summary, in ")[2]] == []
        kept = {memory.title: memory.origins[0].directory for memory in memory_dir.all()}
        assert kept == {
            f"It is {number}": directory for number, directory in enumerate(directories)
        }

    def test_a_page_of_an_earlier_version_names_none(self, memory_dir: MemoryDirectory) -> None:
        memory_dir.keep(EXPIRY)
        memory_dir.edit("facts.md", "by summary, in /srv/app*", "by summary*")
        memory_dir.refresh()
        assert [origin[3:] for one in memory_dir.all() for origin in one.origins] == [
            ("summary", 0, "")
        ]


class TestUntrusted:
    @pytest.fixture
    def stranger(self, memory_dir: MemoryDirectory) -> Conversation:
        memory_dir.untrusted.add("stranger")
        return conversation(30, FEBRUARY + DAY, session_id="stranger")

    def test_what_untrusted_sessions_say_is_kept_apart_and_labelled(
        self, memory_dir: MemoryDirectory, stranger: Conversation
    ) -> None:
        memory_dir.keep(EXPIRY, of=stranger)
        assert list(memory_dir.content()) == ["untrusted/facts.md"]
        assert (
            "*From sessions that are marked untrusted"
            in memory_dir.page("untrusted/facts.md").read_text()
        )
        assert [memory.is_untrusted for memory in memory_dir.all()] == [True]

    def test_it_supersedes_nothing_and_is_never_injected(
        self, memory_dir: MemoryDirectory, stranger: Conversation
    ) -> None:
        (id,) = memory_dir.keep(EXPIRY)
        newer = fact("The JWT expiry of the login service is 7200 seconds", replaces=(id,))
        memory_dir.keep(newer, of=stranger)
        assert [memory.superseded for memory in memory_dir.all()] == ["", ""]
        told = told_with_prompt(
            memory_dir.directory, "What is the JWT expiry of the login service?", 500
        )
        assert "3600" in told
        assert "7200" not in told

    def test_it_is_shown_nothing_that_trusted_sessions_said(
        self, memory_dir: MemoryDirectory, stranger: Conversation
    ) -> None:
        memory_dir.keep(EXPIRY)
        text = "the JWT expiry of the login service is 3600 seconds"
        assert [one.text for one in memory_dir.known(conversation(), text, 5)] == [EXPIRY.title]
        assert memory_dir.known(stranger, text, 5) == []


class TestPerson:
    def test_an_edit_is_searched_and_never_undone(self, memory_dir: MemoryDirectory) -> None:
        (id,) = memory_dir.keep(EXPIRY)
        memory_dir.edit("facts.md", "is 3600 seconds", "is one hour, says Ada")
        memory_dir.refresh()
        assert memory_dir.found("Ada") == [
            "The JWT expiry of the login service is one hour, says Ada"
        ]
        assert memory_dir.keep(EXPIRY) == [id]
        assert "one hour, says Ada" in memory_dir.page("facts.md").read_text()
        assert len(memory_dir.all()) == 1

    def test_a_note_of_their_own_is_found_and_left_as_it_is(
        self, memory_dir: MemoryDirectory
    ) -> None:
        memory_dir.keep(EXPIRY)
        note = "\n## Ask Ada about the port\r\n\r\nShe knows.\r\n"
        with memory_dir.page("facts.md").open("a", newline="") as file:
            file.write(note)
        memory_dir.refresh()
        assert memory_dir.found("Ada") == ["Ask Ada about the port"]
        memory_dir.keep(fact("Something else"))
        assert (
            "## Ask Ada about the port\n\nShe knows.\n" in memory_dir.page("facts.md").read_text()
        )

    def test_a_secret_that_they_wrote_down_stays_on_the_page_alone(
        self, memory_dir: MemoryDirectory
    ) -> None:
        memory_dir.keep(EXPIRY)
        secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        with memory_dir.page("facts.md").open("a") as file:
            file.write(f"\n## My token\n\nIt is {secret}\n")
        memory_dir.refresh()
        assert memory_dir.found("token") == ["My token"]
        assert secret not in str(memory_dir.all())
        assert secret.encode() not in (memory_dir.directory / PROMPT_INDEX).read_bytes()

    def test_bytes_that_are_no_text_are_left_as_they_are(self, memory_dir: MemoryDirectory) -> None:
        memory_dir.keep(EXPIRY)
        with memory_dir.page("facts.md").open("ab") as file:
            file.write(b"\n## Caf\xe9 \xff\n")
        memory_dir.refresh()
        memory_dir.keep(fact("Something else"))
        assert b"\n## Caf\xe9 \xff\n" in memory_dir.page("facts.md").read_bytes()

    def test_an_item_that_they_delete_is_forgotten(self, memory_dir: MemoryDirectory) -> None:
        memory_dir.keep(EXPIRY, fact("Something else"))
        memory_dir.refresh()
        parts = format.split(memory_dir.page("facts.md").read_text())
        memory_dir.page("facts.md").write_text(parts[0] + parts[2])
        memory_dir.refresh()
        assert [memory.title for memory in memory_dir.all()] == ["Something else"]
        assert memory_dir.keep(EXPIRY) == []
        assert "3600" not in memory_dir.page("facts.md").read_text()

    def test_a_page_that_is_just_being_written_forgets_nothing_yet(
        self, memory_dir: MemoryDirectory
    ) -> None:
        (id,) = memory_dir.keep(EXPIRY)
        memory_dir.refresh()
        text = memory_dir.page("facts.md").read_text()
        memory_dir.page("facts.md").write_text("")
        # however slow this machine is
        os.utime(memory_dir.page("facts.md"), (time.time() + 60, time.time() + 60))
        memory_dir.library().refresh()
        assert memory_dir.all() == []
        memory_dir.page("facts.md").write_text(text)
        memory_dir.refresh()
        assert [memory.id for memory in memory_dir.all()] == [id]
        assert forgotten.read(str(memory_dir.directory)) == []

    def test_a_page_that_they_delete_is_forgotten_whole(self, memory_dir: MemoryDirectory) -> None:
        memory_dir.keep(EXPIRY, Memory("person", "Ada", "Runs the shop.", "Ada"))
        memory_dir.refresh()
        memory_dir.page("people/ada.md").unlink()
        memory_dir.refresh()
        assert [memory.kind for memory in memory_dir.all()] == ["fact"]
        assert memory_dir.keep(Memory("person", "Ada", "Runs the shop.", "Ada")) == []

    def test_a_directory_that_was_moved_away_is_not_forgotten(
        self, memory_dir: MemoryDirectory
    ) -> None:
        (id,) = memory_dir.keep(EXPIRY)
        memory_dir.refresh()
        memory_dir.directory.rename(memory_dir.directory.parent / "elsewhere")
        memory_dir.library().refresh()
        assert memory_dir.all() == []
        (memory_dir.directory / ".lock").unlink()
        (memory_dir.directory / PROMPT_INDEX).unlink(missing_ok=True)
        memory_dir.directory.rmdir()
        (memory_dir.directory.parent / "elsewhere").rename(memory_dir.directory)
        memory_dir.refresh()
        assert [memory.id for memory in memory_dir.all()] == [id]

    def test_an_item_may_be_moved_to_another_page(self, memory_dir: MemoryDirectory) -> None:
        (id,) = memory_dir.keep(EXPIRY)
        memory_dir.refresh()
        parts = format.split(memory_dir.page("facts.md").read_text())
        memory_dir.page("facts.md").write_text(parts[0])
        memory_dir.page("decisions.md").write_text("# Decisions\n\n" + parts[1])
        memory_dir.refresh()
        assert [(memory.id, memory.path) for memory in memory_dir.all()] == [(id, "decisions.md")]
        assert forgotten.read(str(memory_dir.directory)) == []

    def test_a_page_that_is_edited_while_we_write_is_read_again(
        self, memory_dir: MemoryDirectory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        memory_dir.keep(EXPIRY)
        write = pages.write
        edits = iter(["Ada was here"])

        def edited_first(directory: str, page: pages.Page) -> None:
            for edit in edits:
                with memory_dir.page("facts.md").open("a") as file:
                    file.write(f"\n## {edit}\n")
            write(directory, page)

        monkeypatch.setattr(pages, "write", edited_first)
        memory_dir.keep(fact("Something else"))
        text = memory_dir.page("facts.md").read_text()
        assert "## Ada was here\n" in text
        assert "## Something else ^" in text
        assert text.count("3600 seconds") == 1

    def test_a_link_in_place_of_a_page_is_not_followed(
        self, memory_dir: MemoryDirectory, tmp_path: Path
    ) -> None:
        (tmp_path / "secret.md").write_text("## Secret plans\n")
        memory_dir.directory.mkdir()
        memory_dir.page("facts.md").symlink_to(tmp_path / "secret.md")
        memory_dir.library().refresh()
        assert memory_dir.all() == []
        with pytest.raises(OSError, match=r"facts\.md"):
            memory_dir.keep(EXPIRY)
        assert (tmp_path / "secret.md").read_text() == "## Secret plans\n"


def test_an_item_made_of_nothing_is_not_kept(memory_dir: MemoryDirectory) -> None:
    assert (
        memory_dir.keep(Memory("fact", " \u200b ", "\x00"), Memory("fact", "", "Only a text")) != []
    )
    (kept,) = memory_dir.all()
    assert isinstance(kept, IndexedMemory)
    assert (kept.title, kept.text) == ("Only a text", "")
    assert IndexedMemory("", "", "x", "fact", "t").at is None
    assert json.dumps(kept.origins)
