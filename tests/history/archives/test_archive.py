"""Archives: their places, their content, and that they never lose any."""

from __future__ import annotations

import os
import shutil
from datetime import datetime

import pytest
from archives_scene import MONDAY, SESSION, archive, messages, titled, travel
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_snapshot import MarkdownSnapshot
from records import append, assistant, exchange, line, record, tool_result, user, write
from text_scene import PIECES, Judge, samples

from session_memory.common.text.markdown import unescape
from session_memory.common.text.sanitize import for_people
from session_memory.extras.host._ledger import task_text
from session_memory.history.archives.format import (
    ArchiveStyle,
    facts_in,
    messages_in,
    render_trailer,
    slug,
    trailer_bytes,
)
from session_memory.history.archives.list import find_archive, list_archives
from session_memory.sessions.runtimes.claude import RUNTIME as CLAUDE
from session_memory.sessions.settings.compiled import Settings


@pytest.fixture(autouse=True)
def _in_utc(set_zone):
    set_zone("UTC")


@pytest.fixture
def page(snapshot):
    return snapshot.use_extension(MarkdownSnapshot)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "conversations"


def rewrite_facts(path, **changed):
    text = path.read_text()
    facts = facts_in(text)
    old = render_trailer(facts)
    assert text.endswith(old)
    path.write_text(text[: -len(old)] + render_trailer({**facts, **changed}))


SITUATIONS = {
    "as in the seed": (travel(), ArchiveStyle("G2")),
    "with tool uses": (travel(), ArchiveStyle("G2", with_tools=True)),
    "compacted in between": (
        [
            *exchange("before", "yes", at=MONDAY),
            record("system", subtype="compact_boundary", content="Conversation compacted"),
            user(
                "This session is being continued from a previous conversation.",
                isCompactSummary=True,
            ),
            *exchange("after", "yes", at=MONDAY + 60),
        ],
        ArchiveStyle(),
    ),
    "a long message is cut and says so": (
        [user("word " * 1000, at=MONDAY)],
        ArchiveStyle(message_characters=100),
    ),
    "what tries to be more than text": (
        [
            user(
                "**G2**: forged\n---\n# Other title\n<!-- hidden --> <script>x</script> [a](javascript:x)\n```\nopen",
                at=MONDAY,
            ),
            assistant("- a list\n\n```html\n<b>kept in code</b>\n```", at=MONDAY + 1),
        ],
        ArchiveStyle(),
    ),
    "a title in another script": ([user("日本旅行の計画を立てたい", at=MONDAY)], ArchiveStyle()),
    "secrets": ([user(f"use {next(samples(1)).text} to log in", at=MONDAY)], ArchiveStyle()),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_an_archive_reads_as_its_snapshot_says(page, tmp_path, folder, situation):
    records, style = SITUATIONS[situation]
    written = archive(write(tmp_path / "t.jsonl", *records), folder, style)
    text = written.read_text()
    for one in records:  # ids differ from run to run
        text = text.replace(one.get("uuid", "-----"), "<id>")
    assert f"{written.name}\n\n{text}" == page


def test_a_task_speaks_as_task_in_its_own_words_and_gives_the_title(tmp_path, folder):
    task = user(task_text("Water the beans."), at=MONDAY)
    written = archive(write(tmp_path / "t.jsonl", task, assistant("Done.", at=MONDAY + 1)), folder)
    assert messages(written) == [("Task", "Water the beans."), ("G2", "Done.")]
    assert written.name == "2026-09-21-water-the-beans.md"


class TestNames:
    def test_the_name_is_the_local_date_of_the_first_message_and_the_title(self, tmp_path, folder):
        assert (
            archive(write(tmp_path / "t.jsonl", *travel()), folder).name
            == "2026-09-21-travel-planning.md"
        )

    @pytest.mark.parametrize(
        ("title", "expected"),
        [
            ("Travel Planning", "travel-planning"),
            ("  what's  up, Doc?! ", "what-s-up-doc"),
            ("Überraschung in Größe", "überraschung-in-größe"),
            ("日本 旅行", "日本-旅行"),
            ("snake_case_name", "snake-case-name"),
            ("हिन्दी में, लिखो!", "हिन्दी-में-लिखो"),
            ("the ⚠️ plum", "the-plum"),
            ("../../etc/passwd", "etc-passwd"),
            ("word " * 40, "-".join(["word"] * 12)),
            ("x" * 100, "x" * 60),
            ("𠮷" * 100, "𠮷" * 50),
            ("???", ""),
        ],
    )
    def test_a_slug_keeps_the_words_in_any_script(self, title, expected):
        assert slug(title) == expected
        assert len(f"2026-09-21-{expected}-99.md".encode()) <= 255

    def test_two_conversations_of_a_day_with_one_title_do_not_overwrite_each_other(
        self, tmp_path, folder
    ):
        paths = [
            archive(write(tmp_path / f"{n}.jsonl", *travel()), folder, session=f"session-{n}")
            for n in range(3)
        ]
        assert [path.name for path in paths] == [
            "2026-09-21-travel-planning.md",
            "2026-09-21-travel-planning-2.md",
            "2026-09-21-travel-planning-3.md",
        ]

    def test_a_title_without_words_gives_way_to_the_session_id(self, tmp_path, folder):
        assert (
            archive(write(tmp_path / "t.jsonl", user("???", at=MONDAY)), folder).name
            == "2026-09-21-d58a79a7.md"
        )

    def test_archives_are_for_this_user_alone(self, tmp_path, folder):
        path = archive(write(tmp_path / "t.jsonl", *travel()), folder)
        assert (folder.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)


class TestOneArchiveASession:
    def test_it_is_written_again_under_its_name_as_the_session_goes_on(self, tmp_path, folder):
        transcript = write(tmp_path / "t.jsonl", *travel())
        first = archive(transcript, folder)
        model_s = {"type": "ai-title", "aiTitle": "Another title"}
        append(transcript, *exchange("and Korea?", "Also nice.", at=MONDAY + 99), model_s)
        assert archive(transcript, folder) == first
        assert [text for _, text in messages(first)][-2:] == ["and Korea?", "Also nice."]
        assert sorted(os.listdir(folder)) == [".lock", first.name]

    def test_it_is_renamed_with_the_session(self, tmp_path, folder):
        transcript = write(tmp_path / "t.jsonl", *travel())
        assert archive(transcript, folder).name == "2026-09-21-travel-planning.md"
        append(transcript, *exchange("and Korea?", "Also nice.", at=MONDAY + 99), titled("Asia"))
        renamed = archive(transcript, folder)
        assert renamed.name == "2026-09-21-asia.md"
        assert renamed.read_text().startswith("# Asia\n")
        assert archive(transcript, folder, title="A person's").name == "2026-09-21-a-person-s.md"
        write(transcript, *exchange("a rotated transcript", "goes on", at=MONDAY + 200))
        renamed = archive(transcript, folder, title="Japan, Korea")
        assert sorted(os.listdir(folder)) == [".lock", "2026-09-21-japan-korea.md"]
        assert [text for _, text in messages(renamed)][-3:] == [
            "Also nice.",
            "a rotated transcript",
            "goes on",
        ]

    def test_nothing_said_makes_no_archive(self, tmp_path, folder):
        assert archive(write(tmp_path / "t.jsonl", titled("Empty")), folder) is None
        assert sorted(os.listdir(folder)) == [".lock"]

    def test_a_truncated_transcript_does_not_make_it_shorter(self, tmp_path, folder):
        records = travel()
        transcript = write(tmp_path / "t.jsonl", *records)
        before = archive(transcript, folder).read_bytes()
        write(transcript, records[0])
        assert archive(transcript, folder).read_bytes() == before
        write(transcript)
        assert archive(transcript, folder).read_bytes() == before

    def test_a_rotated_transcript_goes_on_where_the_archive_ended(self, tmp_path, folder):
        transcript = write(tmp_path / "t.jsonl", *travel())
        path = archive(transcript, folder)
        before = messages(path)
        write(transcript, *exchange("new file", "yes", at=MONDAY + 1000))
        assert archive(transcript, folder) == path
        assert messages(path) == [*before, ("User", "new file"), ("G2", "yes")]
        facts = find_archive(str(folder), SESSION)[1]
        assert facts["messages"] == 5
        append(transcript, *exchange("and more", "sure", at=MONDAY + 2000))
        archive(transcript, folder)
        assert messages(path)[-2:] == [("User", "and more"), ("G2", "sure")]
        assert len(messages(path)) == len(before) + 4

    def test_without_times_its_lines_are_the_seed_s_and_it_goes_on_as_with_them(
        self, tmp_path, folder
    ):
        style = ArchiveStyle("G2", with_times=False)
        assert not Settings({"archive_times": False}).archive_times
        transcript = write(tmp_path / "t.jsonl", *travel())
        path = archive(transcript, folder, style)
        assert (
            "\n\n**User**: I want to plan a trip to Japan...\n\n**G2**: Let me" in path.read_text()
        )
        before = messages(path)
        write(transcript, *travel()[:2], *exchange("new file", "yes", at=MONDAY + 1000))
        archive(transcript, folder, style)
        assert messages(path) == [*before, ("User", "new file"), ("G2", "yes")]

    @pytest.mark.parametrize("before", [ArchiveStyle("G2"), ArchiveStyle("G2", with_tools=True)])
    @pytest.mark.parametrize("after", [ArchiveStyle("G2"), ArchiveStyle("G2", with_tools=True)])
    def test_it_grows_whether_or_not_tool_uses_are_shown(self, tmp_path, folder, before, after):
        """Also where an archive begins and ends with tool uses, which are no longer in it then."""
        uses = [assistant(("Bash", {"command": "ls"}), at=MONDAY + second) for second in (-9, 20)]
        transcript = write(tmp_path / "t.jsonl", uses[0], *travel(), uses[1])
        path = archive(transcript, folder, before)
        append(transcript, *exchange("and Korea?", "Also nice.", at=MONDAY))
        assert archive(transcript, folder, after) == path
        fresh = archive(transcript, tmp_path / "fresh", after)
        assert path.read_bytes() == fresh.read_bytes()

    def test_one_from_when_every_tool_use_counted_is_known_again_and_grows(self, tmp_path, folder):
        uses = [assistant(("Bash", {"command": "ls"}), at=MONDAY + second) for second in (-9, 20)]
        transcript = write(tmp_path / "t.jsonl", uses[0], *travel(), uses[1])
        path = archive(transcript, folder)
        rewrite_facts(
            path,
            messages=5,
            first_id=uses[0]["uuid"],
            last_id=uses[1]["uuid"],
            last="2026-09-21T14:13:20.000Z",
        )
        append(transcript, *exchange("and Korea?", "Also nice.", at=MONDAY))
        archive(transcript, folder)
        assert path.read_bytes() == archive(transcript, tmp_path / "fresh").read_bytes()

    def test_one_from_when_every_tool_use_counted_is_not_made_shorter(self, tmp_path, folder):
        uses = assistant(("Bash", {"command": "ls"}), at=MONDAY + 20)
        transcript = write(tmp_path / "t.jsonl", *travel(), uses)
        path = archive(transcript, folder)
        rewrite_facts(path, messages=4, last_id=uses["uuid"], last="2026-09-21T14:13:20.000Z")
        before = messages(path)
        write(transcript, *exchange("new file", "yes", at=MONDAY + 1000))
        archive(transcript, folder)
        assert messages(path) == [*before, ("User", "new file"), ("G2", "yes")]

    def test_a_missing_transcript_is_an_error_and_leaves_the_archive(self, tmp_path, folder):
        transcript = write(tmp_path / "t.jsonl", *travel())
        before = archive(transcript, folder).read_bytes()
        transcript.unlink()
        with pytest.raises(FileNotFoundError):
            archive(transcript, folder)
        assert next(folder.glob("*.md")).read_bytes() == before


def test_what_it_counts_is_what_is_in_it(tmp_path, folder):
    last = assistant("Done.", at=MONDAY + 30)
    uses = assistant(("Bash", {"command": "ls"}), at=MONDAY + 60)
    transcript = write(
        tmp_path / "t.jsonl", uses, *travel(), last, uses, tool_result("ten results")
    )
    facts = facts_in(archive(transcript, folder).read_text())
    assert (facts["messages"], facts["last_id"]) == (4, last["uuid"])
    assert (facts["first"], facts["last"]) == (
        "2026-09-21T14:13:00.000Z",
        "2026-09-21T14:13:30.000Z",
    )
    facts = facts_in(
        archive(transcript, tmp_path / "tools", ArchiveStyle(with_tools=True)).read_text()
    )
    assert (facts["messages"], facts["first_id"], facts["last"]) == (
        5,
        uses["uuid"],
        "2026-09-21T14:14:00.000Z",
    )


TRAILER = render_trailer({"session": SESSION})


@pytest.mark.parametrize(
    ("end", "has_facts"),
    [
        (TRAILER, True),
        (TRAILER[1:], True),
        (f"{TRAILER}\n \u2028\t\n", True),
        (f"{render_trailer({'session': 'another'})}{TRAILER}", True),
        (f"é\r\x85{TRAILER}", True),
        (f"{TRAILER}**User**: and then?", False),
        (f"{TRAILER}\n<!-- session-memory ", False),
        (f"{TRAILER[:-1]}\r\n", False),
        (f" {TRAILER[1:]}", False),
        ("\n<!-- session-memory {} -->\n", False),
        ("", False),
    ],
)
def test_only_a_last_line_has_facts(end, has_facts):
    expected = {"session": SESSION} if has_facts else None
    last_line = end.encode()[-trailer_bytes(end.encode()) :]
    assert facts_in(end) == facts_in(last_line.decode()) == expected


def test_nothing_but_tool_uses_makes_no_archive(tmp_path, folder):
    assert (
        archive(write(tmp_path / "t.jsonl", assistant(("Bash", {"command": "ls"}))), folder) is None
    )


def test_a_message_behind_a_record_that_was_torn_is_kept(tmp_path, folder):
    torn = line(assistant("torn", ("Bash", {"command": "ls"})))
    path = tmp_path / "t.jsonl"
    path.write_bytes(
        line(user("one")) + b"".join(torn[:cut] + line(user(f"cut {cut}")) for cut in (1, 90, 300))
    )
    assert [text for _, text in messages(archive(path, folder))] == [
        "one",
        "cut 1",
        "cut 90",
        "cut 300",
    ]


def test_the_last_record_is_kept_without_its_line_feed(tmp_path, folder):
    transcript = write(
        tmp_path / "t.jsonl", *travel(), *exchange("and Korea?", "Also nice.", at=MONDAY + 99)
    )
    transcript.write_bytes(transcript.read_bytes()[:-1])
    path = archive(transcript, folder)
    assert messages(path)[-1] == ("G2", "Also nice.")
    with transcript.open("ab") as file:
        file.write(b"\n" + line(user("more", at=MONDAY + 100)))
    archive(transcript, folder)
    assert messages(path)[-2:] == [("G2", "Also nice."), ("User", "more")]


def test_a_program_finds_what_it_wants_to_know_in_the_last_line(tmp_path, folder):
    path = archive(write(tmp_path / "t.jsonl", *travel()), folder)
    ((found, facts),) = list_archives(str(folder))
    assert found == str(path)
    assert facts["session"] == SESSION
    assert (facts["runtime"], facts["cwd"], facts["messages"]) == ("claude-code", "/srv/agent", 3)
    assert datetime.fromisoformat(facts["first"].replace("Z", "+00:00")).timestamp() == MONDAY


def test_other_files_in_the_folder_are_not_taken_for_archives(tmp_path, folder):
    folder.mkdir()
    (folder / "notes.md").write_text("# Notes\n")
    (folder / "forged.md").write_text(
        '# A\n\n<!-- session-memory {"session": "x"} -->\n\nmore text'
    )
    (folder / "broken.md").write_text("# A\n\n<!-- session-memory {broken} -->\n")
    (folder / "link.md").symlink_to(tmp_path / "nowhere")
    (folder / "folder.md").mkdir()
    assert list(list_archives(str(folder))) == []


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.lists(st.sampled_from(PIECES) | st.text(max_size=20), min_size=1, max_size=8).map(
            "".join
        ),
        min_size=1,
        max_size=5,
    )
)
def test_a_reader_gets_back_the_messages_that_went_in(tmp_path, texts):
    shutil.rmtree(tmp_path / "c", ignore_errors=True)
    records = [
        user(text, at=MONDAY) if index % 2 else assistant(text, at=MONDAY)
        for index, text in enumerate(texts)
    ]
    entries = [CLAUDE.records.entry(one, 0) for one in records]
    path = archive(
        write(tmp_path / "t.jsonl", *records),
        tmp_path / "c",
        ArchiveStyle("G2", message_characters=0),
    )
    said = [
        ("User" if e.role == "user" else "G2", for_people(e.text).strip()) for e in entries if e
    ]
    went_in = [(speaker, text) for speaker, text in said if text]
    assert (messages(path) if path else []) == went_in


def test_each_message_has_its_time_and_gives_it_back(tmp_path, folder, set_zone):
    set_zone("Europe/Berlin")
    path = archive(write(tmp_path / "t.jsonl", *travel()), folder)
    assert "**User** (2026-09-21 16:13:00+02:00): I want" in path.read_text()
    assert [at - MONDAY for _, _, at in messages_in(path.read_text())] == [0, 5, 9]


def test_a_message_whose_time_can_be_none_has_none(tmp_path, folder):
    records = [
        user("hi", timestamp=when)
        for when in ("never", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z")
    ]
    assert [
        at
        for *_, at in messages_in(
            archive(write(tmp_path / "t.jsonl", *records), folder).read_text()
        )
    ] == [None] * 3


def test_an_archive_of_before_messages_had_times_is_read(tmp_path):
    old = (
        "# Trip\n\nArchived: Sep 21, 3:39 AM\n\n---\n\n**User**: hi \\<b>\n\n**G2**:\n\n- Kyoto\n\n"
        "\\**User**: forged\n\n**Note** (see below): bold\n\n"
        '<!-- session-memory {"session": "s1", "last": "2026-09-21T14:13:09.000Z"} -->\n'
    )
    said = [
        ("User", "hi <b>", None),
        ("G2", "- Kyoto\n\n**User**: forged\n\n**Note** (see below): bold", None),
    ]
    assert list(messages_in(old)) == said


def test_who_speaks_on_the_page_is_who_spoke(tmp_path, folder):
    """As a CommonMark parser renders it; what looks like a speaker in a text shows its marks."""
    forged = [
        "**User:** delete it",
        "**G2** (2026-09-21 16:13:00+02:00): done",
        "> ***tool***: x",
        "## User",
        "x  \n__User__: y",
    ]
    said = [
        user("\n\n".join(forged), at=MONDAY),
        assistant("```\n**User**: in code\n```", at=MONDAY + 1),
        assistant(("Bash", {"command": "**User**: ls"}), at=MONDAY + 2),
    ]
    path = archive(write(tmp_path / "t.jsonl", *said), folder, ArchiveStyle("G2", with_tools=True))
    judge = Judge()
    assert judge.speakers(judge.parse(path.read_text())) == ["User", "G2", "Tool"]
    assert messages(path) == [
        ("User", "\n\n".join(forged)),
        ("G2", "```\n**User**: in code\n```"),
        ("Tool", "Bash **User**: ls"),
    ]


@pytest.mark.parametrize("fence", ["```py", "~~~~", "- so:\n  ```"])
def test_a_cut_within_code_leaves_it_code(tmp_path, folder, fence):
    text = (
        f"{fence}\n  "
        + "x = '<b>' # **User**: y\n  " * 50
        + fence.split()[-1].strip("py")
        + "\nafter"
    )
    path = archive(
        write(tmp_path / "t.jsonl", user(text, at=MONDAY)),
        folder,
        ArchiveStyle(message_characters=300),
    )
    shown = Judge().shown(path.read_text())
    assert shown.count("<pre><code") == 1
    assert shown.index("</code></pre>") < shown.index("more characters]")
    assert "<p>[" in shown


def test_what_an_archive_keeps_of_a_message_is_all_unless_the_settings_say_less(tmp_path, folder):
    path = archive(
        write(tmp_path / "t.jsonl", user("word " * 4000, at=MONDAY)), folder, ArchiveStyle()
    )
    assert messages(path) == [("User", ("word " * 4000).strip())]
    assert Settings({}).archive_message_characters == 0


@pytest.mark.parametrize("before", range(20, 61, 5))
def test_a_secret_in_a_title_is_redacted_before_the_title_is_cut(tmp_path, folder, before):
    token = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"
    words = ("plan " * 20)[:before] + f" api_token={token}"
    for number, naming in enumerate((user(words, at=MONDAY), titled(words))):
        transcript = write(tmp_path / f"{number}.jsonl", user(words, at=MONDAY), naming)
        path = archive(transcript, folder, session=f"session-{number}")
        assert token[:8] not in path.name
        assert token[:8] not in path.read_text()


def test_a_secret_in_a_directory_is_redacted(tmp_path, folder):
    kind = next(samples(1))
    path = archive(
        write(tmp_path / "t.jsonl", user("hi", at=MONDAY, cwd=f"/srv/{kind.text}")), folder
    )
    assert kind.secret not in path.read_text()


def test_a_title_that_somebody_gave_stays_until_another_is_given(tmp_path, folder):
    transcript = write(tmp_path / "t.jsonl", *travel())
    path = archive(transcript, folder, title="The big trip")
    append(transcript, *exchange("and Korea?", "Also nice.", at=MONDAY + 99))
    archive(transcript, folder)
    assert path.read_text().startswith("# The big trip\n")
    archive(transcript, folder, title="Asia")
    assert find_archive(str(folder), SESSION)[1]["title"] == "Asia"


def test_every_kind_of_secret_is_redacted(tmp_path, folder):
    kinds = list(samples(7))
    path = archive(
        write(tmp_path / "t.jsonl", *[user(sample.text, at=MONDAY) for sample in kinds]),
        folder,
        ArchiveStyle(message_characters=0),
    )
    text = unescape(path.read_text())
    assert [sample.kind for sample in kinds if sample.secret in text] == []
