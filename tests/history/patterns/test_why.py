"""`session-memory why`: the request behind a line, a commit or staged changes."""

from __future__ import annotations

import json
import re
import time
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from git_scene import git
from records import assistant, user, write
from repository_scene import LINE, OTHER, REQUEST, Work

from session_memory.common.errors import SessionMemoryError
from session_memory.history.git.commits import Commit
from session_memory.history.patterns._quotations import decisions, is_go_ahead, proposal_in
from session_memory.history.patterns.why import Asked, Reason, bot_reason
from session_memory.history.patterns.why_text import told_to_agent


@pytest.fixture
def work(tmp_path: Path) -> Work:
    found = Work(tmp_path)
    found.session("a", found.said(REQUEST, "a"), found.edit("a", f"price = 1\n{LINE}"))
    return found


def test_a_committed_line_names_its_request_and_its_commit(work):
    work.write(f"price = 1\n{LINE}\n")
    commit = work.commit()
    said = work.why("cart.py:2")
    assert f"commit {commit[:8]}, Add the tax" in said
    assert f"asked: “{REQUEST}”" in said
    assert "claude-code session a" in said
    assert " read 1 --around 2" in said


def test_a_line_of_which_an_edit_replaced_a_part_names_its_request(work):
    line = "export const price = 3"
    asked = "change the price to three"
    edits = work.part_edit("= 2", "= 3", f"-{line[:-1]}2", f"+{line}")
    work.session("a", work.said(asked, "a"), *edits)
    work.write(f"{line}\n")
    assert f"cart.py:1 (not committed)\n  asked: “{asked}”" in work.why("cart.py:1")


def test_a_line_that_is_not_committed_is_found_too(work):
    work.write(f"price = 1\n{LINE}\n")
    assert f"cart.py:2 (not committed)\n  asked: “{REQUEST}”" in work.why("cart.py:2")


@pytest.mark.parametrize("before", ["", "\n", "price = 2\n"])
def test_a_blank_line_that_is_new_is_not_taken_for_the_end_of_the_committed_file(work, before):
    work.write(before)
    work.commit("Begin")
    work.write(f"import tax\n\n{LINE}\n")
    assert [one["asked"] and one["asked"]["words"] for one in work.reasons("cart.py")][
        -1
    ] == REQUEST


def test_a_reindented_line_and_a_renamed_file_are_followed(work):
    work.write(f"price = 1\n{LINE}\n" + "".join(f"filler_number_{n} = {n}\n" for n in range(30)))
    first = work.commit()
    git(work.root, "mv", "cart.py", "basket.py")
    work.commit("Rename it")
    text = (work.root / "basket.py").read_text()
    work.write(text.replace(LINE, f"    {LINE}"), "basket.py")
    work.commit("Indent it")
    [reason] = work.reasons("basket.py:2")
    assert reason["commit"]["id"] == first
    assert reason["asked"]["words"] == REQUEST


@pytest.mark.parametrize(
    ("listed", "is_looked_through"),
    [
        ("# Format once\n{id}\n", True),
        ("{id}  # format", True),
        ("{id}\nmain\n", False),
        ("", False),
    ],
)
def test_a_commit_that_is_listed_as_formatting_only_is_looked_through(
    work, listed, is_looked_through
):
    work.write(f"price = 1\n{LINE}\n")
    first = work.commit()
    work.write(f"price = 1\n({LINE})\n")
    formatted = work.commit("Format it")
    (work.root / ".git-blame-ignore-revs").write_text(listed.format(id=formatted))
    [reason] = work.reasons("cart.py:2", code=1)  # no session wrote the brackets
    assert reason["commit"]["id"] == (first if is_looked_through else formatted)


def test_a_moved_block_names_its_author_and_the_mover(work):
    block = "\n".join(
        [LINE, "rounded_total = round(total, number_of_digits)", "return rounded_total, tax_rate"]
    )
    work.session("a", work.said(REQUEST, "a"), work.edit("a", f"price = 1\n{block}"))
    work.write(f"price = 1\n{block}\n")
    work.commit()
    # after the commit, however long the other tests took
    later = (time.time() - work.began) / 60 + 20
    moved = work.edit("b", block, "tax.py", minute=later)
    work.session(
        "b", work.said("move the tax into a file of its own please", "b", minute=later - 1), moved
    )
    work.write("price = 1\n")
    work.write(f"{block}\n", "tax.py")
    work.commit("Move the tax")
    [reason] = work.reasons("tax.py")
    assert (reason["asked"]["session"], reason["mover"]["session"]) == ("a", "b")
    assert re.search(
        r"session a .*\n.*\n  moved or rewritten by claude-code session b, ", work.why("tax.py")
    )


def test_a_short_line_of_a_sub_agent_is_its_sessions_in_a_file_of_that_name(work):
    wrote = {**work.edit("a", "rate = tax() / 2", minute=2), "isSidechain": True}
    write(work.user.projects / "-srv-agent" / "a" / "subagents" / "agent-1.jsonl", wrote)
    started = assistant(
        ("Agent", {"description": "Write the rate"}),
        sessionId="a",
        cwd=str(work.root),
        at=work.began + 30,
    )
    work.session("a", work.said(REQUEST, "a"), started)
    work.write("rate = tax() / 2\n")
    work.write("rate = tax() / 2\n", "other.py")
    work.user.run("ingest")
    [reason] = work.reasons("cart.py:1")
    assert (reason["asked"]["session"], reason["asked"]["words"]) == ("a", REQUEST)
    work.reasons("other.py:1", code=1)


def test_a_line_of_which_a_sub_agent_replaced_a_part_is_its_sessions(work):
    line = "export const price = 3"
    edits = work.part_edit("= 2", "= 3", "-export const price = 2", f"+{line}")
    records = [{**record, "isSidechain": True} for record in edits]
    write(work.user.projects / "-srv-agent" / "a" / "subagents" / "agent-1.jsonl", *records)
    started = assistant(("Agent", {}), sessionId="a", cwd=str(work.root), at=work.began + 30)
    work.session("a", work.said(REQUEST, "a"), started)
    work.write(f"{line}\n")
    work.user.run("ingest")
    [reason] = work.reasons("cart.py:1")
    assert (reason["asked"]["session"], reason["asked"]["words"]) == ("a", REQUEST)


def test_an_unknown_line_says_so_and_marks_the_guess_by_time(work):
    work.write(f"price = 1\n{OTHER}\n")
    work.commit("Add shipping")
    now = time.time()
    # asked a minute ago, and not answered yet: it is at work
    for name, ago in (("c", 60), ("d", 3600)):
        said = user(
            "look at the shipping costs again", sessionId=name, cwd=str(work.root), at=now - ago
        )
        work.session(name, said)
    told = work.why("cart.py:2", code=1)
    assert "Unknown: no session in the store wrote this." in told
    assert re.search(r"git blame: \S.*, 20\d\d-", told)
    assert "A guess, by time alone: claude-code session c" in told
    [reason] = work.reasons("cart.py:2", code=1)
    assert (reason["asked"], reason["guess_by_time"]["session"]) == (None, "c")


def test_a_guess_by_time_is_of_when_a_commit_was_written_not_of_when_it_was_rebased(work):
    work.write(f"price = 1\n{OTHER}\n")
    now = time.time()
    work.commit("Add shipping", f"--date=@{int(now - 6 * 86_400)}")
    for name, ago in (("now", 0), ("then", 6 * 86_400)):
        said = user(
            "look at the shipping costs again", sessionId=name, cwd=str(work.root), at=now - ago
        )
        work.session(name, said)
    [reason] = work.reasons("cart.py:2", code=1)
    assert reason["guess_by_time"]["session"] == "then"
    [reason] = work.reasons("HEAD", code=1)
    assert reason["guess_by_time"]["session"] == "then"


def test_the_guess_for_a_line_is_the_session_that_wrote_other_lines_of_its_commit(work):
    work.write(f"price = 1\n{LINE}\n{OTHER}\n")
    work.commit("Add the tax", f"--date=@{int(work.began + 2 * 3600)}")
    work.session("nearer", work.said("look at the costs again", "nearer", minute=119))
    reason = work.reasons("cart.py:3", code=1)[0]
    assert (reason["asked"], reason["guess_by_time"]["session"]) == (None, "a")
    assert "A guess, by the rest of its commit: claude-code session a" in work.why(
        "cart.py:3", code=1
    )


def test_words_do_not_overrule_the_date_of_a_commit_but_break_ties(work):
    work.write("fees = 5\n", "fees.py")
    began = int(work.began + 3600)
    commit = work.commit("Round shipping fees", f"--date=@{began}")
    for name, minute in (("words", 10), ("words1", -9000), ("words2", -18000), ("words3", -27000)):
        work.session(
            name, work.said("round shipping fees: shipping fees of fees.py", name, minute=minute)
        )
    for name, text in (
        ("near", "go on with what costs fees in the long text of laws"),
        ("tied", "round the fees"),
    ):
        work.session(name, work.said(text, name, minute=55))
    hits = work.user.result("search", commit[:9], cwd=work.root)["hits"]
    found = list(dict.fromkeys(hit["conversation"]["session_id"] for hit in hits))
    assert found[:3] == ["tied", "near", "words"]


def test_an_unknown_line_that_is_not_committed_has_a_guess_by_the_time_of_its_file(work):
    work.write(f"price = 1\n{OTHER}\n")
    said = work.said("look at the shipping costs again", "c", minute=300)
    work.session("c", said)
    told = work.why("cart.py:2", code=1)
    assert "(not committed)\n  Unknown: " in told
    assert "A guess, by time alone: claude-code session c" in told


def test_a_bare_go_ahead_quotes_the_proposal_it_agreed_to(work):
    plan = (
        "I looked at it.\n\nThe shipping costs belong into the cart, by weight. Shall I add them?"
    )
    work.session(
        "b",
        work.said(REQUEST, "b"),
        work.said(plan, "b", "assistant", 1),
        work.said("ok, let's go", "b", minute=2),
        work.edit("b", OTHER, minute=3),
    )
    work.write(f"price = 1\n{OTHER}\n")
    [reason] = work.reasons("cart.py:2")
    assert reason["asked"]["words"] == "ok, let's go"
    assert (
        "The shipping costs belong into the cart, by weight. Shall I add them?"
        in reason["asked"]["proposal"]
    )


def test_what_was_decided_on_the_way_is_quoted(work):
    decided = "I add the tax in the cart instead of the invoice, because both need it."
    work.session(
        "a",
        work.said(REQUEST, "a"),
        work.said(decided, "a", "assistant"),
        work.edit("a", f"price = 1\n{LINE}"),
    )
    work.write(f"price = 1\n{LINE}\n")
    assert f"decided on the way: “{decided}”" in work.why("cart.py:2")


def test_a_commit_and_what_is_staged_name_their_session(work):
    work.write(f"price = 1\n{LINE}\n")
    git(work.root, "add", "-A")
    assert REQUEST in work.why("--staged")
    commit = work.commit()
    assert [one["asked"]["words"] for one in work.reasons(commit[:10])] == [REQUEST]


@pytest.mark.parametrize("subject", ["Bump left-pad from 1.0.0 to 1.0.1", "chore(deps): update x"])
def test_a_bump_is_attributed_to_no_session(work, subject):
    work.write(f"price = 1\n{LINE}\n")
    commit = work.commit(subject)
    assert "No session: this commit bumps dependencies." in work.why(commit, code=1)
    assert work.reasons("cart.py:2", code=1)[0]["asked"] is None


def test_commits_of_bots_and_of_lock_files_are_recognised():
    def commit(author="Ann", files=("a.py",)):
        return Commit("c" * 40, 1, author, "ann@example.com", 0, 0, "Change things", "", files)

    assert bot_reason(commit("renovate[bot]")) == "a bot made this commit"
    assert bot_reason(commit(files=("web/go.sum",))) == "this commit changes lock files only"
    assert bot_reason(commit()) == ""


def test_an_excluded_session_is_named_by_nothing(work):
    work.write(f"price = 1\n{LINE}\n")
    commit = work.commit()
    assert REQUEST in work.why(commit)
    work.user.config("sessions:\n  a: ignore\n")
    for words in (("cart.py:2",), (commit,)):
        said = work.why(*words, code=1)
        assert REQUEST not in said
        assert "session a" not in said


def test_the_trace_has_the_lines_of_each_file_by_session(work):
    work.write(f"price = 1\n{LINE}\n")
    commit = work.commit()
    done = work.user.run("why", "cart.py", "--format", "agent-trace", cwd=work.root)
    trace = json.loads(done.stdout)
    [file] = trace["files"]
    [conversation] = file["conversations"]
    assert conversation["ranges"][-1]["end_line"] == 2
    assert trace["vcs"] == {"type": "git", "revision": commit}
    assert REQUEST not in done.stdout
    work.write(f"price = 1\n{LINE}\n{OTHER}\n")
    done = work.user.run("why", "cart.py", "--format", "agent-trace", cwd=work.root)
    assert "vcs" not in json.loads(done.stdout)


def test_the_trace_of_a_commit_has_all_its_lines_in_ranges(work):
    more = "discount = price * customer.rate\nreceipt = total - discount"
    work.session(
        "b", work.said("add a discount to the cart, before the receipt", "b"), work.edit("b", more)
    )
    work.write(f"{LINE}\n\n\n{more}\n")
    commit = work.commit()
    done = work.user.run("why", commit, "--format", "agent-trace", cwd=work.root)
    [file] = json.loads(done.stdout)["files"]
    assert "2 lines, the first of them cart.py:4-5 (commit " in work.why(commit)
    assert sorted(
        [[*part.values()] for one in file["conversations"] for part in one["ranges"]]
    ) == [[1, 1], [4, 5]]
    assert len(file["conversations"]) == 2


def test_the_trace_has_what_the_published_schema_requires_and_nothing_else(work):
    work.write(f"price = 1\n{LINE}\n")
    work.commit()
    trace = json.loads(
        work.user.run("why", "cart.py", "--format", "agent-trace", cwd=work.root).stdout
    )
    assert set(trace) == {"version", "id", "timestamp", "vcs", "tool", "files"}
    assert re.fullmatch(r"\d+\.\d+", trace["version"])
    assert uuid.UUID(trace["id"]).version == 4
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", trace["timestamp"])
    assert set(trace["vcs"]) == {"type", "revision"}
    assert set(trace["tool"]) == {"name", "version"}
    for file in trace["files"]:
        assert set(file) == {"path", "conversations"}
        for one in file["conversations"]:
            assert set(one) == {"url", "contributor", "ranges"}
            assert one["contributor"] == {"type": "ai"}
            assert urlsplit(one["url"]).scheme
            assert all(
                1 <= part["start_line"] <= part["end_line"] and len(part) == 2
                for part in one["ranges"]
            )


def test_a_note_is_written_after_a_preview_and_without_prompts_unless_wanted(work):
    work.write(f"price = 1\n{LINE}\n")
    commit = work.commit()
    git(work.root, "config", "user.name", "Ann")
    git(work.root, "config", "user.email", "ann@example.com")
    assert "Not written." in work.why(commit, "--notes")
    assert git(work.root, "for-each-ref", "refs/notes") == ""
    work.why(commit, "--notes", "--yes")
    note = git(work.root, "notes", "--ref=session-memory", "show", commit)
    assert note.startswith("claude-code session a, 20")
    assert REQUEST not in note
    work.why(commit, "--notes", "--yes", "--with-prompts")
    assert REQUEST in git(work.root, "notes", "--ref=session-memory", "show", commit)


def test_no_filter_and_no_hook_of_the_repository_runs(work, tmp_path):
    mark = tmp_path / "ran"
    git(work.root, "config", "filter.evil.clean", f"touch {mark}; cat")
    git(work.root, "config", "diff.evil.textconv", f"touch {mark}; cat")
    git(work.root, "config", "core.fsmonitor", f"touch {mark}")
    work.write("*.py filter=evil diff=evil\n", ".git/info/attributes")
    work.write(f"price = 1\n{LINE}\n")
    for words in ("cart.py:1-2", "--staged", "HEAD"):
        work.user.run("why", words, cwd=work.root)
        assert not mark.exists(), words


def test_a_search_for_a_hash_finds_the_session_of_the_commit_first(work):
    for number in range(3):
        name = f"other{number}"
        work.session(
            name,
            work.said(
                "Add the tax to the cart.py, says the subject: add the tax",
                name,
                minute=-9000 * number,
            ),
        )
    work.write(f"price = 1\n{LINE}\n")
    commit = work.commit("Add the tax")
    done = work.user.run("search", commit[:9], cwd=work.root)
    assert done.stdout.startswith(f"Commit {commit[:8]}, ")
    assert f"why {commit[:8]}" in done.stdout
    hits = work.user.result("search", commit[:9], cwd=work.root)["hits"]
    assert hits[0]["conversation"]["session_id"] == "a"
    assert work.user.run("search", "0123456789", cwd=work.root).returncode == 1


def test_a_go_ahead_is_short_and_agrees():
    assert [
        is_go_ahead(one) for one in ("ok, let's go", "yes", "do 1, 2 and 5", "why not", REQUEST)
    ] == [True, True, True, False, False]


def test_a_proposal_is_the_paragraph_that_asks_with_the_one_before():
    assert proposal_in("Intro.\n\nI move it.\n\nShall I?\n\nBye.") == "I move it.\n\nShall I?"


def test_decisions_are_sentences_as_they_were_said():
    said = "All is done. I use a table rather than a list here. It works."
    assert decisions(["the request, because", said], has_reasons=True) == (
        "I use a table rather than a list here.",
    )
    no_decisions = "Let me use a table instead of a list.\nWhy a table rather than a list?\nIt is a table because:"
    assert decisions(["", no_decisions], has_reasons=True) == ()


def test_a_curly_apostrophe_is_an_apostrophe():
    announced = "I’ll use a table rather than a list here.\nLet’s see if a list won’t work.\n"
    rejected = "Please don’t touch the schema of the orders."
    assert decisions(["", announced + rejected], has_reasons=False) == (rejected,)


def test_an_explanation_is_a_reason_but_no_decision():
    said = "The tests fail as expected because the classes don't exist yet.\nWe keep the list because it is sorted.\n"
    chosen = "We keep the list because it is sorted."
    orders = (
        "Please don't touch the schema of the orders.\nIt works, but they do not know it yet.\n"
    )
    assert decisions(["", said + orders], has_reasons=False) == (
        chosen,
        "Please don't touch the schema of the orders.",
    )
    assert decisions(["", said], has_reasons=True) == (said.splitlines()[0], chosen)


def test_the_tool_tells_the_words_first_and_at_most_1200_characters(work, monkeypatch):
    from session_memory.app.tools.home_backend import HomeBackend
    from session_memory.app.tools.values import RefusedError

    work.write(f"price = 1\n{LINE}\n")
    work.commit()
    work.user.run("ingest")
    monkeypatch.chdir(work.root)
    backend = HomeBackend(None, work.user.environment)
    told = backend.why("cart.py:2")
    assert told.startswith(f"“{REQUEST}”\nclaude-code session a, ")
    assert len(backend.why("cart.py")) <= 1200
    monkeypatch.chdir(work.user.home)
    with pytest.raises((RefusedError, SessionMemoryError), match="is not in a git worktree"):
        backend.why(f"{work.root}/cart.py:2")


@pytest.mark.parametrize("line", ["0", "3", "9-12", "9-1"])
def test_a_line_that_a_file_lacks_is_an_error_for_people_and_agents(work, monkeypatch, line):
    from session_memory.app.tools.home_backend import HomeBackend

    work.write(f"price = 1\n{LINE}\n")
    work.commit()
    first = line.partition("-")[0]
    done = work.user.run("why", f"cart.py:{line}", cwd=work.root)
    assert (done.returncode, f"cart.py has no line {first}\n" in done.stderr) == (1, True)
    monkeypatch.chdir(work.root)
    with pytest.raises(SessionMemoryError, match=f"cart.py has no line {first}"):
        HomeBackend(None, work.user.environment).why(f"cart.py:{line}")


def test_an_agent_is_told_one_number_for_one_line_and_that_an_empty_file_has_none(
    work, monkeypatch
):
    from session_memory.app.tools.home_backend import HomeBackend

    work.write(f"price = 1\n{LINE}\n")
    work.commit()
    work.user.run("ingest")
    (work.root / "empty.py").touch()
    monkeypatch.chdir(work.root)
    backend = HomeBackend(None, work.user.environment)
    assert "\ncart.py:2, commit " in backend.why("cart.py:2")
    assert backend.why("empty.py") == "There are no lines."


def test_reasons_for_an_agent_are_cut_at_1200_characters():
    asked = Asked(
        "s" * 36, "codex", "", 1, 1, 0, "word " * 100, "plan " * 100, ("because " * 25,) * 3
    )
    reasons = [Reason("a.py", n, n, None, asked) for n in range(20)]
    assert 600 < len(told_to_agent(reasons)) <= 1200


@pytest.mark.parametrize(
    ("id", "shortened"),
    [
        ("session_8f3a11b7-4f30-409d", "session_8f3a11b7"),
        ("20261130_125402_0040b1", "20261130_125402_0"),
        ("8f3a11b7-4f30-409d", "8f3a11b7"),
    ],
)
def test_a_shortened_id_keeps_more_than_the_word_or_day_that_it_begins_with(work, id, shortened):
    work.session(id, work.said("Add a discount", id), work.edit(id, "discount = 0.25", "sale.py"))
    work.write("discount = 0.25\n", "sale.py")
    assert f"claude-code session {shortened} “" in work.why("sale.py:1")
