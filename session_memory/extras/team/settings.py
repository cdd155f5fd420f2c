"""The section `team` of config.yaml."""

from __future__ import annotations

from collections.abc import Mapping

from ...sessions.settings.compiled import Kind, Section, key


class TeamSettings(Section):
    SECTION = "team"
    ABOUT = "A store that several machines or people share: `session-memory team`."

    url: str = key(
        Kind.DATABASE,
        "",
        "The team's database; `session-memory team join` sets it.",
        if_wrong="",
        sample="postgresql://ann@db.example.org/team",
    )
    machine: str = key(Kind.TEXT, "", "The name of this machine in the team.", sample="laptop")
    share: str = key(
        Kind.ANY_OF,
        "mine",
        "Who may read a session in the team's store, unless a rule says otherwise:\nyou on all "
        "your machines, the team, or (off) nobody.",
        choices=("mine", "team", "off"),
        if_wrong="off",
    )
    projects: Mapping[str, str] = key(
        Kind.NAMES,
        {},
        "Names for repositories without a remote `origin`.",
        sample="{~/work/app: app}",
    )
