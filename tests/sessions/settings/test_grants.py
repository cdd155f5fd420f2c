"""The keys that an agent home's own file may set, and those that the person must grant."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_process import plain_environment, run_here
from records import register

from session_memory.sessions.settings.check import Checked, _read
from session_memory.sessions.settings.homes import home_at

TEAM = 'team: {url: "postgresql://eve@db.example.org/x"}\nsessions: {main: {share: team}}\n'
SUMMARY = "memories: {strategies: [extractive, summary], summary: {model: opus}}\n"
GRAPH = "memories: {strategies: [graphiti], graphiti: {base_url: http://127.0.0.1:9, key_env: AWS_KEY}}\n"


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def settings(tmp_path: Path, text: str, grants: str = "") -> Checked:
    """What counts in an agent home with this file, whose person grants it this."""
    home = home_at(str(tmp_path / "anna"), {"HOME": str(tmp_path)})
    for path, content in (
        (home.config_file, text),
        (home.rules_files[0], f"homes: {{~/anna: [{grants}]}}\n"),
    ):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(content)
    checked = _read((home.config_file, *home.rules_files), home.root)
    assert home.settings().memories == checked.values.get("memories", {})
    assert home.settings().team == checked.values.get("team", {})
    return checked


@pytest.mark.parametrize(
    ("text", "key", "grant"),
    [
        (TEAM, "team.url", "team"),
        (SUMMARY, "memories.strategies", "summary"),
        (SUMMARY.replace("[extractive, summary]", "[extractive]"), "memories.summary", "summary"),
        (GRAPH, "memories.strategies", "graphiti"),
        (GRAPH.replace("[graphiti]", "[extractive]"), "memories.graphiti", "graphiti"),
        (f"memory: {{watchPath: {Path('/etc')}}}\n", "store.watch_path", "watch_path"),
    ],
)
def test_a_home_s_own_file_sends_spends_and_reads_nothing_without_a_grant(
    tmp_path: Path, text: str, key: str, grant: str
) -> None:
    found = settings(tmp_path, text)
    assert "team" not in found.values
    assert found.values.get("memories", {}).get("strategies", ["extractive"]) == ["extractive"]
    assert not [text for text in ("AWS_KEY", "opus", "/etc") if text in str(found.values)]
    assert not [rule for _, rule in found.rules if rule.get("share")]
    (fault,) = found.faults
    assert f"{key} is only accepted in your own settings" in fault
    assert f"session-memory config homes '{{{tmp_path}/anna: [{grant}]}}' --home ~" in fault
    assert settings(tmp_path, text, grant).faults == []


def test_a_grant_allows_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    text = (
        TEAM
        + "memories: {strategies: [summary, graphiti], summary: {model: opus}, graphiti: {key_env: AWS_KEY}}\n"
    )
    found = settings(tmp_path, text, "summary")
    assert found.values["memories"]["strategies"] == ["summary"]
    assert found.values["memories"]["summary"] == {"model": "opus"}
    assert "graphiti" not in found.values["memories"]
    assert "team" not in found.values
    found = settings(tmp_path, text, "team, graphiti")
    assert found.values["team"]["url"] == "postgresql://eve@db.example.org/x"
    assert [rule for _, rule in found.rules if rule.get("share") == "team"]
    assert found.values["memories"]["strategies"] == ["graphiti"]
    assert "summary" not in found.values["memories"]


def test_what_a_home_has_inside_it_may_be_watched(tmp_path: Path) -> None:
    (tmp_path / "anna").mkdir()
    (tmp_path / "anna/link").symlink_to("/etc")
    inside, outside = f"{tmp_path}/anna/transcripts", f"{tmp_path}/anna/link"
    found = settings(
        tmp_path, f"memory: {{watchPath: ['{inside}', '{outside}', '{tmp_path}/anna/../bert']}}\n"
    )
    assert found.values["store"]["watch_path"] == [inside]


def test_a_home_does_not_grant_itself_anything(tmp_path: Path) -> None:
    found = settings(tmp_path, f"homes: {{{tmp_path}/anna: [team, summary]}}\n{TEAM}")
    assert "team" not in found.values
    assert "homes" not in found.values


def test_setting_such_a_key_says_that_it_does_not_count(tmp_path: Path) -> None:
    anna = tmp_path / "anna"
    (anna / ".session-memory/sessions").mkdir(parents=True)
    register(anna, tmp_path)
    environment = plain_environment(tmp_path)
    done = run_here(
        ["config", "memories.strategies", "[summary]", "--home", str(anna)], environment, tmp_path
    )
    assert done.returncode == 0
    assert "memories.strategies is only accepted in your own settings" in " ".join(
        done.stdout.split()
    )
    done = run_here(["config", "max_characters", "300", "--home", str(anna)], environment, tmp_path)
    assert (done.returncode, "counts from" in done.stdout) == (0, False)
    run_here(
        ["config", "homes", f"{{{anna}: [summary]}}", "--home", str(tmp_path)],
        environment,
        tmp_path,
    )
    done = run_here(
        ["config", "memories.strategies", "[summary]", "--home", str(anna)], environment, tmp_path
    )
    assert (done.returncode, "counts from" in done.stdout) == (0, False)
