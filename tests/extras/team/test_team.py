"""`session-memory team` and upkeep's sharing: machines with separate homes, and a real server."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import hooks_scene
import pytest
from postgres_server import PostgresServer
from psycopg.conninfo import conninfo_to_dict
from records import append, assistant, exchange, user
from team_scene import ORIGIN, PROJECT, Member, Team

from session_memory.app.tools.call import call
from session_memory.app.tools.home_backend import HomeBackend
from session_memory.common.system.git_identity import _normalised
from session_memory.common.system.pgpass import address_of


@pytest.fixture
def machine(tmp_path):
    return lambda name, origin=ORIGIN: Member(tmp_path / name, origin)


def shared(team: Team) -> list[tuple[str, ...]]:
    return team.rows(
        "SELECT owner || '@' || machine, session_id, project, share, cwd FROM session ORDER BY 1, 2"
    )


def test_a_machine_joins_shares_what_is_new_and_leaves(machine, team):
    ann = machine("laptop")
    ann.says("plan", "plan the harbour", "/src")
    ann.says("elsewhere", "nothing of that", cwd=str(ann.home / "notes"))
    joined = ann.result("team", "join", team.typed_url("ann"), "--as", "ann@laptop")
    assert (joined["member"], joined["machine"]) == ("ann", "laptop")
    assert [one["session_id"] for one in ann.result("team", "preview")["sessions"]] == ["plan"]
    assert ann.result("team", "push")["items"] == 2
    assert shared(team) == [("ann@laptop", "plan", PROJECT, "mine", f"{PROJECT}/src")]
    assert ann.result("team", "push")["items"] == 0
    ann.says("later", "and the pier")
    told = ann.result("team", "status")
    [status] = told["machines"]
    assert (status["who"], status["sessions"]) == ("ann@laptop", 1)
    assert told["waiting"] == {"sessions": 1, "items": 2}
    assert told["heard_at"] >= told["pushed_at"][:19]
    ann.run("config", "team.url", "postgresql://ann@127.0.0.1:1/gone")
    gone = ann.run("team", "status")
    assert gone.returncode == 1
    assert "Last push: 20" in gone.stdout
    assert "Now: 127.0.0.1:1/gone: " in gone.stdout
    ann.run("config", "team.url", team.typed_url("ann"))
    assert ann.result("team", "leave", "--purge", "--dry-run") == {"dry_run": True, "withdrawn": 1}
    assert len(shared(team)) == 1
    assert ann.result("team", "leave", "--purge")["withdrawn"] == 1
    assert shared(team) == []
    assert ann.run("team", "push").returncode == 1


def test_rules_say_who_may_read_a_session_and_the_stricter_wins(machine, team):
    ann = machine("laptop")
    for session in ("open", "own", "kept", "secret", "told"):
        ann.says(session, f"about {session}")
    ann.run("team", "join", team.typed_url("ann"), "--as", "laptop")
    config = ann.home / ".session-memory" / "config.yaml"
    config.write_text(
        f"{config.read_text()}projects: {{{ann.clone}: {{share: team}}}}\n"
        "sessions:\n  own: {share: mine}\n  kept: {share: off}\n  secret: {ignore: true}\n  told: "
        "{text: false}\n"
    )
    ann.run("team", "push")
    assert [(session, share) for _, session, _, share, _ in shared(team)] == [
        ("open", "team"),
        ("own", "mine"),
    ]
    ann.run("config", "sessions.open.share", "off")
    assert ann.result("team", "push")["withdrawn"] == 1
    assert [session for _, session, *_ in shared(team)] == ["own"]


def test_what_others_share_is_found_listed_and_read_with_who_and_where(machine, team):
    ann, bob = machine("laptop"), machine("desk")
    ann.says("plan", "plan the harbour", "/src")
    ann.says("own", "the harbour is mine")
    for one, name in ((ann, "ann"), (bob, "bob")):
        one.run("team", "join", team.typed_url(name))
    ann.run("config", "sessions.plan.share", "team")
    ann.run("team", "push")
    [hit] = bob.result("search", "--team", "harbour", "--project", ".", cwd=bob.clone)["hits"][:1]
    who = hit["conversation"]["who"]
    assert (who.partition("@")[0], hit["conversation"]["session_id"]) == ("ann", "plan")
    said = bob.run("search", "--team", "harbour").stdout
    assert f"user of {who}\n    session-memory read " in said
    assert f"claude-code, in {PROJECT}/src, session plan\n" in said
    [listed] = bob.result("conversations", "--team")["conversations"]
    assert listed["who"] == who
    assert who in bob.run("conversations", "--team").stdout
    shown = bob.run("show", listed["id"], "--team").stdout
    assert f"of {who}" in shown
    assert "plan the harbour" in shown
    assert bob.result("search", "harbour", code=1)["hits"] == []
    assert len(ann.result("conversations", "--team")["conversations"]) == 2


def test_a_prompt_tells_what_others_did_without_asking_the_server(machine, team):
    ann, bob = machine("laptop"), machine("desk")
    on_branch(ann.clone, "fix/login")
    edit = (
        "Edit",
        {"file_path": f"{ann.clone}/src/login.py", "old_string": "a", "new_string": "b"},
    )
    transcript = ann.session(
        "login",
        user("fix login", at=time.time() - 1230, cwd=str(ann.clone)),
        assistant("The login is fixed.", edit, at=time.time() - 1215, cwd=str(ann.clone)),
        project="login",
    )
    bob.says("own", "what bob does")
    for one, name in ((ann, "ann"), (bob, "bob")):
        one.run("team", "join", team.typed_url(name), "--as", f"{name}@laptop")
    ann.run("config", "sessions.login.share", "team")
    ann.run("team", "push")
    bob.run("team", "push")
    event = {
        "session_id": "b0b",
        "transcript_path": str(bob.projects / "x" / "b0b.jsonl"),
        "cwd": str(bob.clone),
        "hook_event_name": "UserPromptSubmit",
        "prompt": "hi",
    }
    Path(event["transcript_path"]).parent.mkdir()
    Path(event["transcript_path"]).write_text("")
    on_branch(bob.clone, "fix/login")
    with silent_server() as (url, is_asked):
        bob.run("config", "team.url", url)
        told = run_hook(event, bob.home)
        assert not is_asked()
    assert 'by "fix login" (ann@laptop) on another machine' in told
    assert (
        '- "fix login" (ann@laptop, 20m ago, 2 messages): edited src/login.py; last: "The login is fixed."'
        in told
    )
    assert "ann@laptop" not in run_hook(event, bob.home), "once"
    append(
        transcript,
        *exchange("now the logout", "Done, too.", at=time.time() - 60, cwd=str(ann.clone)),
    )
    ann.run("team", "push")
    bob.run("config", "team.url", team.typed_url("bob"))
    bob.run("team", "push")
    told = run_hook(event, bob.home)
    assert "now the logout" in told
    assert "login.py" not in told
    ann.run("config", "sessions.login.share", "mine")
    ann.run("team", "push")
    bob.run("team", "push")
    assert not list((bob.home / ".session-memory" / "state" / "team").rglob("*.jsonl"))
    assert run_hook(event, bob.home) == ""


def test_who_begins_a_first_session_in_a_project_is_told_what_others_do_there(machine, team):
    ann, bob = machine("laptop"), machine("desk")
    ann.session(
        "login",
        *exchange("fix login", "Done.", at=time.time() - 60, cwd=str(ann.clone)),
        project="login",
    )
    ann.joins(team, "ann", "  share: team")
    ann.run("team", "push")
    ignored = bob.home / "work" / "ignored"
    subprocess.run(["cp", "-r", str(bob.clone), str(ignored)], check=True)
    bob.joins(team, "bob", f"projects: {{'{ignored}': {{ignore: true}}}}", "upkeep: off")
    events = {directory: begins(bob, directory) for directory in (bob.clone, ignored)}
    assert run_hook(events[bob.clone], bob.home) == ""
    bob.run("team", "push")
    assert '- "fix login" (ann@laptop, ' in run_hook(events[bob.clone], bob.home)
    assert run_hook(events[ignored], bob.home) == ""
    kept = bob.home / ".session-memory" / "state" / "team"
    assert len(list(kept.rglob("*.jsonl"))) == 1
    subprocess.run(["rm", "-r", str(bob.clone)], check=True)
    bob.run("team", "push")
    assert list(kept.rglob("*.jsonl")) == [], "of a project that is not here any more"


def begins(member: Member, directory: Path) -> dict[str, str]:
    """Begins a session, in which nothing is said yet; returns the event of its first prompt."""
    transcript = member.projects / "x" / f"{directory.name}.jsonl"
    transcript.parent.mkdir(exist_ok=True)
    transcript.write_text("")
    event = {
        "session_id": directory.name,
        "transcript_path": str(transcript),
        "cwd": str(directory),
    }
    started = {**event, "hook_event_name": "SessionStart", "source": "startup"}
    assert hooks_scene.run(started, member.home, "session_start") == b""
    return {**event, "hook_event_name": "UserPromptSubmit", "prompt": "hi"}


def on_branch(clone: Path, name: str) -> None:
    """Has a branch with a commit of two hours ago checked out."""
    person = {
        f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    environment = {
        **person,
        "PATH": os.defpath,
        "HOME": str(clone),
        "GIT_COMMITTER_DATE": f"{time.time() - 7200:.0f} +0000",
    }
    for command in (
        ["symbolic-ref", "HEAD", f"refs/heads/{name}"],
        ["commit", "-qm", "begin", "--allow-empty"],
    ):
        subprocess.run(["git", *command], cwd=clone, check=True, env=environment)


def run_hook(event: dict[str, str], home: Path) -> str:
    """What a prompt is told."""
    printed = hooks_scene.run(event, home)
    return hooks_scene.told(printed) if printed else ""


def test_what_share_cannot_be_is_off_and_is_said(machine, team):
    ann = machine("laptop")
    ann.says("plan", "plan the harbour")
    ann.run("team", "join", team.typed_url("ann"))
    config = ann.home / ".session-memory" / "config.yaml"
    config.write_text(f"{config.read_text()}sessions: {{plan: {{share: everybody}}}}\n")
    assert ann.result("team", "push")["sessions"] == 0
    assert "share is 'everybody', not off, mine or team; using off instead" in " ".join(
        ann.run("config").stdout.split()
    )


def test_a_clone_that_is_gone_keeps_its_project_and_one_without_origin_has_the_name_that_it_is_given(
    machine, team
):
    ann = machine("laptop", origin="/srv/git/app")
    ann.says("plan", "plan the harbour", "/src")
    ann.run("team", "join", team.typed_url("ann"))
    assert ann.result("team", "push")["sessions"] == 0
    named = ann.result("team", "project", "harbour", cwd=ann.clone)
    assert named == {"project": "harbour", "root": str(ann.clone)}
    ann.run("team", "push")
    assert shared(team)[0][2:] == ("harbour", "mine", "harbour/src")


def test_a_clone_that_is_deleted_takes_nothing_from_the_team(machine, team):
    ann = machine("laptop")
    ann.says("plan", "plan the harbour", "/src")
    ann.run("team", "join", team.typed_url("ann"))
    ann.run("team", "push")
    before = shared(team)
    subprocess.run(["rm", "-r", str(ann.clone)], check=True)
    assert ann.result("team", "push")["withdrawn"] == 0
    assert shared(team) == before


def test_a_rule_holds_back_what_the_store_lost(machine, team):
    ann = machine("laptop")
    for session in ("plan", "other"):
        ann.says(session, f"about {session}")
    ann.run("team", "join", team.typed_url("ann"))
    ann.run("team", "push")
    for path in (*ann.projects.rglob("*.jsonl"), *ann.database.parent.glob("memory.db*")):
        path.unlink()
    assert ann.result("team", "push")["withdrawn"] == 0
    ann.run("config", "sessions.plan.share", "off")
    assert ann.result("team", "push")["withdrawn"] == 1
    assert [session for _, session, *_ in shared(team)] == ["other"]


def test_what_is_forgotten_is_forgotten_by_the_team(machine, team):
    ann = machine("laptop")
    ann.says("plan", "plan the harbour")
    ann.says("other", "another thing")
    ann.run("team", "join", team.typed_url("ann"))
    ann.run("team", "push")
    assert ann.run("forget", "plan", "--yes").returncode == 0
    assert [session for _, session, *_ in shared(team)] == ["other"]
    assert team.rows("SELECT * FROM posting WHERE term = 'harbour'") == []
    assert ann.result("team", "push")["withdrawn"] == 0


def test_what_is_forgotten_while_the_server_is_gone_is_forgotten_by_the_team_with_the_next_push(
    machine, team
):
    ann = machine("laptop")
    ann.says("plan", "plan the harbour")
    ann.run("team", "join", team.typed_url("ann"), "--as", "laptop")
    ann.run("team", "push")
    with silent_server() as (url, is_asked):
        ann.run("config", "team.url", url)
        began = time.monotonic()
        done = ann.run("forget", "plan", "--yes")
        assert time.monotonic() - began < 10
        assert is_asked()
    assert done.returncode == 1
    assert "until the next push" in done.stderr
    ann.run("config", "team.url", team.typed_url("ann"))
    assert ann.result("team", "push")["withdrawn"] == 1
    assert shared(team) == []


def test_who_asks_a_server_that_says_nothing_waits_for_seconds_and_a_tool_does_not_ask_it_again_soon(
    machine,
):
    ann = machine("laptop")
    ann.says("plan", "plan the harbour")
    assert ann.run("ingest").returncode == 0
    with silent_server() as (url, is_asked), ThreadPoolExecutor() as pool:
        ann.config(f"team:\n  url: '{url.partition('?')[0]}'\n  machine: laptop\n")
        began = time.monotonic()
        commands = [
            pool.submit(ann.run_process, *words, "--team")
            for words in (("search", "harbour"), ("conversations",))
        ]
        backend = HomeBackend(None, ann.environment)
        silent = call(backend, "search_team", {"query": "harbour"})
        for done in [one.result() for one in commands]:
            assert (done.returncode, done.stdout) == (1, "")
            assert "timeout expired" in done.stderr
        assert time.monotonic() - began < 30
        assert (silent.is_error, "timeout expired" in silent.text, is_asked()) == (True, True, True)
        assert "; the next attempt is in" in call(backend, "read_session", {"name": "team-7"}).text


@contextmanager
def silent_server() -> Iterator[tuple[str, Callable[[], bool]]]:
    """A server that accepts connections and never answers, and whether anybody has asked it.

    It is like a server behind a network that drops everything."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"postgresql://ann@127.0.0.1:{listening.getsockname()[1]}/team?connect_timeout=2"
        yield url, lambda: bool(select.select([listening], [], [], 0)[0])


def test_secrets_stay_on_the_machine(machine, team):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    ann = machine("laptop")
    ann.says("plan", f"the token is {token} ok")
    ann.run("team", "join", team.typed_url("ann"))
    ann.run("team", "push")
    texts = str(team.rows("SELECT text FROM item")) + str(team.rows("SELECT term FROM posting"))
    assert "token" in texts
    assert token not in texts
    assert token.lower() not in texts


def test_a_password_goes_where_libpq_looks_for_it_and_nowhere_else(machine, team):
    ann = machine("laptop")
    admin = conninfo_to_dict(team.admin_url)
    url = f"postgresql://ann:very%3Asecret@/{team.name}?host={admin['host']}&port={admin.get('port', 5432)}"
    done = ann.run("team", "join", url, "--as", "laptop")
    assert done.returncode == 0, done.stderr
    password_file = ann.home / ".pgpass"
    assert password_file.stat().st_mode & 0o777 == 0o600
    assert "very\\:secret" in password_file.read_text()
    others = [path for path in ann.home.rglob("*") if path.is_file() and path != password_file]
    assert not [path for path in others if b"secret" in path.read_bytes()]
    assert "secret" not in done.stdout + done.stderr
    refused = ann.run("config", "team.url", url)
    assert refused.returncode == 2
    assert "secret" not in refused.stdout + refused.stderr


def test_nobody_joins_as_another_nor_without_a_team(machine, team, postgres: PostgresServer):
    ann = machine("laptop")
    refused = ann.run("team", "join", team.typed_url("ann"), "--as", "bob@laptop")
    assert refused.returncode == 2
    assert "knows you as ann" in refused.stderr
    refused = ann.run("team", "join", "mysql://ann@db/team")
    assert "postgresql://" in refused.stderr
    gone = ann.run("team", "join", "postgresql://ann@127.0.0.1:1/team")
    assert gone.returncode == 1
    assert len(gone.stderr.splitlines()) <= 2
    assert not (ann.home / ".session-memory" / "config.yaml").exists()


def test_agents_neither_join_nor_leave(machine, team):
    refused = machine("laptop").run("team", "join", team.typed_url("ann"), CLAUDECODE="1")
    assert refused.returncode == 1
    assert shared(team) == []


def test_a_team_is_made_its_members_added_and_removed(machine, postgres: PostgresServer):
    postgres.execute("DROP ROLE IF EXISTS gina")
    admin = machine("admin")
    sql = admin.run("team", "init", "postgresql:///x", "--member", "gina", "--sql").stdout
    assert "SELECT add_member('gina')" in sql
    with postgres.empty_database() as url:
        given = conninfo_to_dict(url)
        port = given.get("port", 5432)
        postgres.execute(f"ALTER DATABASE {given['dbname']} SET log_statement = 'ddl'")
        typed = (
            f"postgresql:///{given['dbname']}?host={given['host']}&port={port}&user={given['user']}"
        )
        made = admin.result("team", "init", typed, "--member", "gina")
        assert (made["migrations"], made["all_members"], made["open_to_all"]) == (
            [4],
            ["gina"],
            True,
        )
        [gina] = made["members"]
        assert gina["url"].startswith("postgresql://gina:")
        assert gina["url"].endswith(f"@/{given['dbname']}?host={given['host']}&port={port}")
        if postgres.started:
            logged = Path(postgres.started.log).read_text()
            assert "SCRAM-SHA-256$" in logged
            assert address_of(gina["url"]).password not in logged
        again = admin.run("team", "init", typed).stdout
        assert "It was there already.\nMembers: gina.\n" in again
        assert f'REVOKE CONNECT ON DATABASE "{given["dbname"]}" FROM PUBLIC;' in again
        assert admin.result("team", "join", gina["url"], "--as", "gina@desk")["member"] == "gina"
        assert (
            "gina would no longer be a member"
            in admin.run("team", "remove", typed, "gina", "--purge", "--dry-run").stdout
        )
        assert admin.run("team", "status").returncode == 0
        assert admin.result("team", "remove", typed, "gina", "--purge")["deleted"] == 0
        assert admin.run("team", "status").returncode == 1
    postgres.execute("DROP ROLE gina")


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/acme/app.git",
        "https://ann:token@example.org/acme/app",
        "git@example.org:acme/app.git",
        "ssh://git@example.org:2222/acme/app.git/",
        "git://EXAMPLE.org/acme/app",
        "example.org:acme/app",
    ],
)
def test_an_origin_is_the_same_however_git_is_told_it(url):
    assert _normalised(url) == PROJECT


@pytest.mark.parametrize(
    "url",
    ["", "/srv/git/app", "../app", "file:///srv/git/app", "C:/git/app", "https://example.org/"],
)
def test_an_origin_on_this_machine_is_none(url):
    assert _normalised(url) == ""
