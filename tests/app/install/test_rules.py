"""Rules that let agents look things up without asking: offered, never added unasked, fully removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from install_machine import MINE, Machine, agent_home, at_a_terminal, tree, used_machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return used_machine(tmp_path / "home")


def rules(machine: Machine) -> list[str]:
    return list(json.loads(machine.settings.read_text()).get("permissions", {}).get("allow", []))


def test_no_rule_is_put_in_unless_it_is_asked_for(machine: Machine) -> None:
    done = machine.install()
    assert rules(machine) == []
    assert "session-memory install --allow" in done.stdout
    assert rules(machine) == []


def test_at_a_terminal_the_rules_are_put_in_if_the_answer_is_yes(machine: Machine) -> None:
    drawn = at_a_terminal(machine, "n")
    question = next(line for line in drawn.splitlines() if "[y/N]" in line)
    assert question.startswith(
        "May agents look up the past without asking you each time (Claude Code: allow rules)? [y/N]"
    )
    assert (
        drawn.index("Installed:")
        < drawn.index("would have got:")
        < drawn.index("Next")
        < drawn.index(question)
    )
    assert rules(machine) == []
    at_a_terminal(machine, "y")
    assert any(rule.endswith("bin/session-memory search:*)") for rule in rules(machine))
    assert "[y/N]" not in at_a_terminal(machine, "n"), "they are there already"


@pytest.mark.parametrize(
    "settings", [None, MINE, '{"permissions": {"allow": ["Bash(ls:*)"], "deny": []}}']
)
def test_the_rules_stay_with_an_update_and_go_with_an_uninstall_to_the_byte(
    machine: Machine, settings: str | None
) -> None:
    if settings is not None:
        machine.settings.write_text(settings)
    before = tree(machine.claude)
    machine.installed("--allow")
    allowed = rules(machine)
    assert len(allowed) > 10
    machine.installed()
    assert rules(machine) == allowed
    machine.install("--uninstall")
    assert tree(machine.claude) == before


def test_a_rule_that_the_user_had_stays(machine: Machine) -> None:
    machine.settings.write_text('{"permissions": {"allow": ["mcp__sessions__read_session"]}}\n')
    machine.installed("--allow")
    machine.settings.write_text(machine.settings.read_text().replace("{", '{"model": "opus", ', 1))
    machine.install("--uninstall")
    assert json.loads(machine.settings.read_text()) == {
        "model": "opus",
        "permissions": {"allow": ["mcp__sessions__read_session"]},
    }


def test_rules_that_the_user_took_out_are_not_put_in_again(machine: Machine) -> None:
    machine.installed("--allow")
    settings = json.loads(machine.settings.read_text())
    del settings["permissions"]
    machine.settings.write_text(json.dumps(settings))
    machine.installed()
    assert rules(machine) == []


def test_a_dry_run_shows_each_rule(machine: Machine) -> None:
    done = machine.install("--allow", "--dry-run")
    assert "mcp__plugin_session-memory_sessions__search_sessions" in done.stdout
    assert not machine.settings.exists()


def test_an_agent_home_has_the_rules_for_its_own_archives(machine: Machine) -> None:
    home = agent_home(machine.home / "agent")
    machine.installed("--home", str(home), "--allow")
    allowed = json.loads((home / ".claude/settings.json").read_text())["permissions"]["allow"]
    # from the directory of the settings on: in a copy, those of the copy
    assert "Read(/conversations/**)" in allowed
