"""Messages of `session-memory team`: the problem and the remedy, with the documented exit codes."""

from __future__ import annotations

import pytest
from postgres_server import PostgresServer
from psycopg.conninfo import conninfo_to_dict
from team_scene import Member, Team

from session_memory.common.system.pgpass import address_of


@pytest.fixture
def ann(tmp_path):
    return Member(tmp_path / "laptop")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("join", "ann@db"), "argument URL: it does not begin with postgresql://"),
        (("join", "postgresql://ann@db:port/team"), "argument URL: "),
        (
            ("join", "postgresql://ann@db/team", "--as", "lap top"),
            "a machine's name may contain letters, digits",
        ),
        (("project", "two\nlines"), "a project has at most 60 letters on one line"),
    ],
)
def test_what_cannot_be_meant_is_a_wrong_call(ann, words, said):
    done = ann.run("team", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_without_an_action_it_says_how_things_are(ann):
    for command, said in (
        ("team", "this machine has not joined a team"),
        ("host", "there is no host in"),
    ):
        bare, status = ann.run(command), ann.run(command, "status")
        assert said in bare.stderr
        assert (bare.returncode, bare.stderr) == (status.returncode, status.stderr)


def test_who_has_joined_leaves_before_they_join_as_another_and_is_told_what_stays(ann, team: Team):
    ann.says("plan", "plan the harbour")
    ann.joins(team, "ann")
    ann.run("team", "push")
    other = ann.run("team", "join", team.typed_url("ann"), "--as", "desk")
    assert (other.returncode, other.stderr.count("this machine has joined")) == (1, 1)
    assert "team leave" in other.stderr
    assert "join again --as laptop" in ann.run("team", "leave").stdout
    assert not (ann.home / ".session-memory" / "state" / "team.json").exists()
    again = ann.run("team", "join", team.typed_url("ann"), "--as", "laptop").stdout
    assert "Something was shared as ann@laptop before" in again
    ann.config("team: {url: 'postgresql://ann@127.0.0.1:1/team', machine: laptop}\n")
    purge = ann.run("team", "leave", "--purge")
    assert purge.returncode == 1
    assert "127.0.0.1:1/team: Connection refused\n  it has not left: try again" in purge.stderr


def test_a_preview_says_what_is_not_shared_and_a_project_gets_a_name_and_loses_it(tmp_path):
    ann = Member(tmp_path / "laptop", origin="/srv/git/app")
    ann.says("plan", "plan the harbour")
    assert ann.result("team", "preview")["unshared"] == {"no_project": 1, "rules": 0}
    unnamed = ann.run("team", "project", cwd=ann.clone)
    assert unnamed.returncode == 1
    assert "session-memory team project NAME gives it one" in unnamed.stderr
    named = ann.result("team", "project", "harbour", cwd=ann.clone)
    assert named == {"project": "harbour", "root": str(ann.clone)}
    config = ann.home / ".session-memory" / "config.yaml"
    config.write_text(f"{config.read_text()}  share: off\n")
    assert "Not shared by rules (`share: off`): 1." in ann.run("team", "preview").stdout
    assert (
        ann.run("team", "project", "", cwd=ann.clone).stdout == "~/work/app no longer has a name.\n"
    )
    home = ann.run("team", "project", "mine", cwd=ann.home)
    assert (home.returncode, "all your work is below it" in home.stderr) == (1, True)


def test_an_administrator_is_told_how_each_joins_and_what_stays_of_who_is_removed(
    ann, team: Team, postgres: PostgresServer
):
    postgres.execute("DROP ROLE IF EXISTS ina")
    try:
        told = ann.run(
            "team", "init", team.typed_url(), "--member", "ina", "--member", "ann"
        ).stdout
        assert "ina joins with:\n  session-memory team join 'postgresql://ina:" in told
        assert "ann was already a user there, and joins with their password:\n" in told
        assert "GRANT" in ann.result("team", "init", team.typed_url(), "--sql")["sql"]
        refused = ann.run("team", "remove", team.typed_url("ina"), "ann")
        assert refused.returncode == 1
        assert "a user who owns the database" in refused.stderr
        removed = ann.run("team", "remove", team.typed_url(), "ina").stdout
        assert (
            removed
            == "ina is no longer a member; their shared sessions stay until you run this with --purge.\n"
        )
    finally:
        postgres.execute("DROP ROLE ina")


def test_a_password_behind_the_question_mark_goes_where_libpq_looks_for_it_too(ann, team: Team):
    admin = conninfo_to_dict(team.admin_url)
    host, port = admin["host"], admin.get("port", 5432)
    asked = f"user=ann&password=very%3Asecret&host={host}&port={port}"
    done = ann.run("team", "join", f"postgresql:///{team.name}?{asked}")
    assert done.returncode == 0, done.stderr
    assert (ann.home / ".pgpass").read_text() == f"{host}:{port}:{team.name}:ann:very\\:secret\n"
    assert "secret" not in (ann.home / ".session-memory" / "config.yaml").read_text()
    refused = ann.run("config", "team.url", f"postgresql:///{team.name}?user=ann&password=secret")
    assert (refused.returncode, "secret" in refused.stderr) == (2, False)
    for name in ("password", "%70assword"):
        address = address_of(f"postgresql://ann:a@db/team?{name}=b&sslmode=require")
        assert (address.url, address.password) == ("postgresql://ann@db/team?sslmode=require", "b")


@pytest.mark.parametrize(
    "own",
    ["user=postgres", "%75ser=postgres", "passfile=/root/.pgpass", "sslpassword=x", "service=x"],
)
def test_the_address_for_a_member_has_nothing_of_the_administrator_s_own(own):
    address = address_of(f"postgresql://postgres:secret@db/team?{own}&sslmode=require")
    assert address.of_user("ann", "a b") == "postgresql://ann:a%20b@db/team?sslmode=require"
