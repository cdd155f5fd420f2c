"""The rules for a session: the person's, the asking homes', and its own agent home's."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_scene import git, repository

from session_memory.common.system.json import sealed, unsealed
from session_memory.sessions.settings import rules as module
from session_memory.sessions.settings.compiled import Settings
from session_memory.sessions.settings.homes import home_at
from session_memory.sessions.settings.privacy import Privacy

IGNORE_EMAIL = "sessions: {email: {ignore: true}}\n"


def rules(place: Path, text: str) -> None:
    (place / ".session-memory").mkdir(parents=True, exist_ok=True)
    (place / ".session-memory/config.yaml").write_text(text)


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    (tmp_path / "agent/.session-memory/sessions").mkdir(parents=True)
    return tmp_path / "agent"


def test_many_rules_cost_each_of_many_sessions_no_more_than_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = Settings({}, [(f"session-{number}", {"ignore": True}) for number in range(200)])
    folds: list[str] = []
    fold = module._folded
    monkeypatch.setattr(module, "_folded", lambda name: folds.append(name) or fold(name))
    hidden = [settings.rule(f"session-{number}").ignore for number in range(100, 300)]
    assert hidden == [True] * 100 + [False] * 100
    assert len(folds) == 400


def test_without_rules_all_may_be_told(tmp_path: Path) -> None:
    privacy = Privacy({"HOME": str(tmp_path)})
    rule = privacy.rule("/somewhere", "email")
    assert (rule.ignore, rule.quote, rule.isolate_memories, privacy.has_rules("/somewhere")) == (
        False,
        True,
        False,
        False,
    )


@pytest.mark.parametrize("name", ["main", "Mail of the week", "0000-1111", "email-7"])
def test_the_person_s_rules_are_by_any_name_of_a_session(tmp_path: Path, name: str) -> None:
    rules(
        tmp_path,
        'sessions: {main: {ignore: true}, Mail of the week: {ignore: true}, 0000-1111: {ignore: true}, "email-*": {ignore: true}}',
    )
    assert Privacy({"HOME": str(tmp_path)}).rule("", "x", name).ignore


def test_the_rules_of_the_agent_home_count_for_what_was_started_in_it(
    tmp_path: Path, agent: Path
) -> None:
    rules(agent, IGNORE_EMAIL)
    privacy = Privacy({"HOME": str(tmp_path)})
    assert [
        privacy.rule(str(tmp_path / one), "email").ignore
        for one in ("agent", "agent/src/x", "other")
    ] == [True, True, False]


def test_of_the_person_s_and_the_home_s_the_stricter_holds(tmp_path: Path, agent: Path) -> None:
    rules(agent, "sessions: {email: {ignore: false, text: false}, web: {ignore: false}}\n")
    rules(tmp_path, "sessions: {email: {text: true}, web: {ignore: true}}\n")
    privacy = Privacy({"HOME": str(tmp_path)})
    assert [
        (rule.ignore, rule.quote)
        for rule in (privacy.rule(str(agent), one) for one in ("email", "web"))
    ] == [(False, False), (True, True)]


def test_those_of_whoever_asks_count_for_all(tmp_path: Path, agent: Path) -> None:
    rules(agent, IGNORE_EMAIL)
    environ = {"HOME": str(tmp_path)}
    assert Privacy(environ, home_at(str(agent), environ)).rule("/elsewhere", "email").ignore


def test_what_is_said_in_an_excluded_directory_is_excluded_by_the_home_s_rules_too(
    tmp_path: Path, agent: Path
) -> None:
    rules(tmp_path, "projects: {~/private: {ignore: true}}\n".replace("~", str(tmp_path)))
    rules(agent, "projects: {/srv/client: {text: false}}\n")
    privacy = Privacy({"HOME": str(tmp_path)})
    assert privacy.of_directory(f"{tmp_path}/private/notes").ignore
    assert not privacy.of_directory("/srv/client", str(agent)).quote
    assert privacy.of_directory("/srv/client", "/elsewhere").quote
    assert privacy.rule(f"{tmp_path}/private", "any").ignore


def test_a_directory_that_is_named_by_a_link_is_the_one_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    rules(tmp_path, f"projects: {{{tmp_path}/there: {{ignore: true}}}}\n")
    (tmp_path / "link").symlink_to("there")
    assert Privacy({"HOME": str(tmp_path)}).of_directory(f"{tmp_path}/link/x").ignore


def test_a_rule_for_a_repository_counts_in_all_its_worktrees(tmp_path: Path) -> None:
    app = repository(tmp_path / "src" / "app")
    git(app, "worktree", "add", "-q", "../app-login")
    git(app, "worktree", "add", "-q", str(tmp_path / "elsewhere"))
    rules(tmp_path, f"projects: {{{app}: {{ignore: true}}, {app}/secret: {{text: false}}}}\n")
    privacy = Privacy({"HOME": str(tmp_path)})
    for inside in (app, app.parent / "app-login", tmp_path / "elsewhere" / "src"):
        assert privacy.rule(str(inside), "any").ignore
    assert not privacy.of_directory(f"{tmp_path}/elsewhere/secret").quote
    assert not privacy.of_directory(str(tmp_path / "src" / "application")).ignore


def test_an_agent_of_a_group_cannot_loosen_what_its_host_says(tmp_path: Path) -> None:
    host, group = tmp_path / "host", tmp_path / "host/groups/web"
    (group / ".session-memory/sessions").mkdir(parents=True)
    (host / "store").mkdir()
    (host / "store/messages.db").touch()
    rules(host, IGNORE_EMAIL)
    rules(group, "sessions: {email: {ignore: false}}\n")
    (group / ".session-memory/state").mkdir()
    forged = '{"stamps": [], "values": {}, "rules": [], "faults": [], "projects": []}'
    (group / ".session-memory/state/settings.json").write_text(forged)
    environ = {"HOME": str(tmp_path / "ada")}
    assert Privacy(environ).rule(str(group), "email").ignore
    assert not home_at(str(group), environ, host=str(host)).compiled_file.startswith(str(group))


def test_the_files_whose_rules_count_are_known_whether_they_are_there_or_not(
    tmp_path: Path, agent: Path
) -> None:
    privacy = Privacy({"HOME": str(tmp_path)})
    person, own = (f"{place}/.session-memory" for place in (tmp_path, agent))
    settings, forgotten = "config.yaml", "store/memory.db.forgotten.jsonl"
    assert privacy.files("/elsewhere") == [f"{person}/{settings}", f"{person}/{forgotten}"]
    assert set(privacy.files(str(agent))) == {
        f"{one}/{name}" for one in (person, own) for name in (settings, forgotten)
    }


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Email", "email"),
        ("email", "EMAIL"),
        ("Caf\u00e9", "cafe\u0301"),
        ("cafe\u0301-*", "CAF\u00c9-7"),
        ("STRASSE", "stra\u00dfe"),
    ],
)
def test_a_name_is_excluded_however_it_is_spelled(tmp_path: Path, written: str, name: str) -> None:
    rules(tmp_path, f'sessions: {{"{written}": {{ignore: true}}}}\n')
    assert Privacy({"HOME": str(tmp_path)}).rule("", name).ignore


def test_a_directory_is_excluded_by_a_link_that_was_made_after_the_rule(tmp_path: Path) -> None:
    (tmp_path / "secret/sub").mkdir(parents=True)
    rules(
        tmp_path,
        f"projects: {{{tmp_path}/alias: {{ignore: true}}, {tmp_path}/cli*: {{ignore: true}}}}\n",
    )
    assert not Privacy({"HOME": str(tmp_path)}).of_directory(str(tmp_path / "secret/sub")).ignore
    (tmp_path / "alias").symlink_to(tmp_path / "secret")
    assert Privacy({"HOME": str(tmp_path)}).of_directory(str(tmp_path / "secret/sub")).ignore
    (tmp_path / "other").symlink_to(tmp_path)
    (tmp_path / "client/x").mkdir(parents=True)
    assert Privacy({"HOME": str(tmp_path)}).of_directory(str(tmp_path / "other/client/x")).ignore


def test_a_directory_that_is_gone_is_excluded_in_either_form_of_unicode(tmp_path: Path) -> None:
    rules(tmp_path, "projects: {/gone/caf\u00e9: {ignore: true}}\n")
    assert Privacy({"HOME": str(tmp_path)}).of_directory("/gone/cafe\u0301/x").ignore


def test_another_case_is_another_directory_unless_the_disk_takes_both_for_one(
    tmp_path: Path,
) -> None:
    """A link stands for a disk that ignores case: both spellings lead to one inode."""
    for name in ("Client", "client"):
        (tmp_path / name).mkdir()
    rules(
        tmp_path,
        f"projects: {{{tmp_path}/client: {{ignore: true}}, {tmp_path}/cl*: {{ignore: true}}}}\n",
    )
    privacy = Privacy({"HOME": str(tmp_path)})
    assert [privacy.of_directory(str(tmp_path / one)).ignore for one in ("client", "Client")] == [
        True,
        False,
    ]
    (tmp_path / "Client").rmdir()
    (tmp_path / "Client").symlink_to(tmp_path / "client")  # one directory under both spellings
    assert Privacy({"HOME": str(tmp_path)}).of_directory(str(tmp_path / "Client")).ignore


def shown(tmp_path: Path, *directories: str) -> list[str]:
    """Return those of the directories whose sessions are not hidden by the person's rules."""
    privacy = Privacy({"HOME": str(tmp_path)})
    hidden = [directory for directory in directories if privacy.rule(directory, "any").ignore]
    assert hidden == [path for path in directories if privacy.of_directory(path).ignore]
    return [directory for directory in directories if directory not in hidden]


def test_the_most_specific_rule_of_a_file_decides(tmp_path: Path) -> None:
    inside = "/s/gp", "/s/gp/src", "/s/gp/secret/x", "/s/other", "/s", "/t", "/s/gpx"
    for text in (
        "{/s: {ignore: true}, /s/gp: {ignore: false}, /s/gp/secret: {ignore: true}}",
        "{/s/gp/secret/: {ignore: true}, /s/gp/: {ignore: false}, /s/: {ignore: true}}",
        '{"/s/*": {ignore: true}, /s/gp: {ignore: false}, /s/gp/secret: {ignore: true}, '
        "/s: {ignore: true}}",
    ):
        rules(tmp_path, f"projects: {text}\n")
        assert shown(tmp_path, *inside) == ["/s/gp", "/s/gp/src", "/t"], text
    rules(tmp_path, 'projects: {"*": {ignore: true}, /s: {ignore: false}}')
    assert shown(tmp_path, *inside) == [path for path in inside if path != "/t"]


def test_a_name_is_more_specific_than_its_beginning(tmp_path: Path) -> None:
    rules(
        tmp_path,
        'projects: {"/w/client-*": {ignore: true}, "/w/client-a*": {ignore: false}, '
        "/w/client-abc: {ignore: true}, /w/client-x: {ignore: false}}",
    )
    clients = [f"/w/client-{name}" for name in ("a", "abc", "abcd", "b", "x", "xy")]
    assert shown(tmp_path, *clients) == ["/w/client-a", "/w/client-abcd", "/w/client-x"]


def test_each_word_is_decided_on_its_own(tmp_path: Path) -> None:
    rules(
        tmp_path,
        "projects: {/s: {ignore: true, quote: false, share: off}, /s/a: {ignore: false}, "
        "/s/b: {share: team}}",
    )
    privacy = Privacy({"HOME": str(tmp_path)})
    rule_of = {name: privacy.of_directory(f"/s/{name}") for name in "abc"}
    assert {name: (rule.ignore, rule.quote, rule.share) for name, rule in rule_of.items()} == {
        "a": (False, False, "off"),
        "b": (True, False, "team"),
        "c": (True, False, "off"),
    }


def test_of_two_rules_for_one_directory_the_stricter_holds(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    places = [str(tmp_path / name) for name in ("link", "real", "real/below")]
    for text in (
        "{~/real: {ignore: true}, ~/link: {ignore: false}}",
        "{~/real: {ignore: false}, ~/link: {ignore: true}}",
        "{~/real: {ignore: false}, ~/real/: {ignore: true}}",
    ):
        rules(tmp_path, f"projects: {text}".replace("~", str(tmp_path)))
        assert shown(tmp_path, *places) == [], text


def test_across_files_the_stricter_rule_holds(tmp_path: Path, agent: Path) -> None:
    environ = {"HOME": str(tmp_path)}

    def is_hidden(person: str, home: str) -> bool:
        rules(tmp_path, person)
        rules(agent, home)
        return Privacy(environ).rule(f"{agent}/src", "any").ignore

    parent, here = f"{{{tmp_path}: RULE}}", f"{{{agent}/src: RULE}}"
    hide, track = "{ignore: true}", "{ignore: false}"
    hides, tracks = f"projects: {parent}", f"projects: {here}"
    assert is_hidden(hides.replace("RULE", hide), tracks.replace("RULE", track))
    assert is_hidden(tracks.replace("RULE", track), hides.replace("RULE", hide))
    assert is_hidden("tracking: only", "tracking: all\n" + tracks.replace("RULE", track))
    assert is_hidden(tracks.replace("RULE", track), "tracking: only")
    assert not is_hidden("tracking: only\n" + tracks.replace("RULE", track), "scope: all")


def test_a_session_s_rule_hides_it_in_a_tracked_project_too(tmp_path: Path) -> None:
    rules(
        tmp_path,
        "tracking: only\nprojects: {/s: {ignore: false}}\nsessions: {email: {ignore: true}}",
    )
    privacy = Privacy({"HOME": str(tmp_path)})
    assert privacy.rule("/s", "email").ignore
    assert not privacy.rule("/s", "web").ignore


@pytest.mark.parametrize("text", ["tracking: only", "tracking: onyl", "trackin: only"])
def test_with_tracking_only_just_the_listed_projects_are_tracked(tmp_path: Path, text: str) -> None:
    inside = "/s/gp", "/s/gp/src", "/s/other", "/t", ""
    rules(tmp_path, text)
    assert shown(tmp_path, *inside) == []
    rules(
        tmp_path,
        f"{text}\nprojects: {{/s/gp: {{ignore: false}}, /t: {{quote: false}}, /s: {{ignore: true}}}}",
    )
    assert shown(tmp_path, *inside) == ["/s/gp", "/s/gp/src", "/t"]
    privacy = Privacy({"HOME": str(tmp_path)})
    assert not privacy.rule("/t", "any").quote
    assert not privacy.of_names("any").ignore


def test_a_worktree_of_a_tracked_repository_is_tracked(tmp_path: Path) -> None:
    app = repository(tmp_path / "app")
    git(app, "worktree", "add", "-q", "../login")
    rules(tmp_path, f"tracking: only\nprojects: {{{app}: {{ignore: false}}}}")
    places = [str(tmp_path / name) for name in ("app", "login", "login/src", "other")]
    assert shown(tmp_path, *places) == places[:3]
    rules(tmp_path, f"projects: {{{app}: {{ignore: true}}, {places[1]}: {{ignore: false}}}}")
    assert shown(tmp_path, *places) == [places[3]]


def test_a_rule_that_is_no_path_is_stricter_than_any_exception(tmp_path: Path) -> None:
    rules(tmp_path, "projects: {private: {ignore: true}, /s/private: {ignore: false}}")
    assert shown(tmp_path, "/s/private", "/s/private/x", "/s") == ["/s"]


def test_settings_compiled_by_an_earlier_version_are_read_anew(tmp_path: Path) -> None:
    rules(tmp_path, "projects: {/s: {ignore: true}}")
    assert shown(tmp_path, "/s", "/t") == ["/t"]
    [compiled] = (tmp_path / ".session-memory").rglob("settings*.json")
    before = compiled.read_text()
    known = unsealed(compiled.read_bytes())
    known["projects"] = [rule for file in known.pop("projects_by_file") for rule in file]
    compiled.write_bytes(sealed(known))
    assert shown(tmp_path, "/s", "/t") == ["/t"]
    assert compiled.read_text() == before
