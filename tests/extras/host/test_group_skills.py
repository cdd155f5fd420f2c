"""The skills of a host, as its groups have them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from host_scene import HostMachine, about

from session_memory.extras.host._group_skills import MOST_FILES, SkillError, sync_skills
from session_memory.sessions.settings.host_layout import Layout, OutsideGroupError


def skill(layout: Layout, name: str, text: str = "Greet.") -> Path:
    """A skill of the host, with a script."""
    directory = Path(layout.skills_dir, name)
    (directory / "scripts").mkdir(parents=True, exist_ok=True)
    (directory / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {text}\n---\n{text}\n")
    (directory / "scripts" / "run.sh").write_text("#!/bin/sh\necho hello\n")
    (directory / "scripts" / "run.sh").chmod(0o755)
    return directory


def synced(layout: Layout, group: str = "garden") -> Path:
    sync_skills(layout, layout.group(group))
    return Path(layout.group(group).config_dir, "skills")


def test_a_host_without_skills_makes_nothing(layout: Layout) -> None:
    assert not synced(layout).exists()


def test_skills_come_change_and_go_with_the_hosts(layout: Layout) -> None:
    source = skill(layout, "greet")
    target = synced(layout)
    assert (target / "greet/SKILL.md").read_bytes() == (source / "SKILL.md").read_bytes()
    assert os.access(target / "greet/scripts/run.sh", os.X_OK)
    written = (target / "greet/SKILL.md", target / ".session-memory.json")
    before = [path.stat().st_ino for path in written]
    synced(layout)
    assert [path.stat().st_ino for path in written] == before, (
        "what has not changed is not written anew"
    )
    skill(layout, "greet", "Greet twice.")
    (source / "scripts/run.sh").unlink()
    synced(layout)
    assert "Greet twice." in (target / "greet/SKILL.md").read_text()
    assert not (target / "greet/scripts/run.sh").exists()
    for path in (source / "SKILL.md",):
        path.unlink()
    synced(layout)
    assert sorted(os.listdir(target)) == [".session-memory.json"]


def test_a_skill_of_the_groups_own_stays(layout: Layout) -> None:
    own = Path(layout.group("garden").config_dir, "skills", "greet", "SKILL.md")
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    skill(layout, "greet")
    skill(layout, "weed")
    target = synced(layout)
    assert own.read_text() == "mine"
    assert (target / "weed" / "SKILL.md").is_file()
    Path(layout.skills_dir, "greet", "SKILL.md").unlink()
    synced(layout)
    assert own.read_text() == "mine"


def test_it_goes_on_where_it_was_killed(layout: Layout) -> None:
    skill(layout, "greet")
    target = synced(layout)
    (target / "greet/SKILL.md").write_text("half")
    synced(layout)
    assert "Greet." in (target / "greet/SKILL.md").read_text()


def test_links_lead_nowhere(layout: Layout, tmp_path: Path) -> None:
    source = skill(layout, "greet")
    (tmp_path / "secret").write_text("secret")
    (source / "link").symlink_to(tmp_path / "secret")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    target = synced(layout)
    assert not (target / "greet/link").exists()
    for path in sorted((target / "greet").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (target / "greet").rmdir()
    (target / "greet").symlink_to(elsewhere)
    synced(layout)
    assert (list(elsewhere.iterdir()), (target / "greet").is_symlink()) == ([], False)
    os.rename(target, tmp_path / "old")
    target.symlink_to(elsewhere)
    with pytest.raises(OutsideGroupError):
        synced(layout)
    assert list(elsewhere.iterdir()) == []


def test_too_much_is_refused_by_its_name(layout: Layout) -> None:
    source = skill(layout, "greet")
    for number in range(MOST_FILES):
        (source / f"{number}.md").write_text("x")
    with pytest.raises(SkillError, match="greet"):
        synced(layout)


def test_the_model_is_told_of_a_skill_and_can_use_it(host: HostMachine, group: str) -> None:
    skill(host.layout, "heron", "Says which bird stands in the pond")
    host.api.replies = [{"tools": [{"name": "Skill", "input": {"skill": "heron"}}]}, "Used."]
    host.ask(group, "look m-bed-1")
    assert "Says which bird stands in the pond" in json.dumps(about(host, "m-bed-1")[0].body)
    assert "Launching skill: heron" in json.dumps(host.api.prompts()[-1].body)
