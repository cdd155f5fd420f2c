"""Finds out if omp asks its user before it runs some tools, which few people want."""

from __future__ import annotations

from itertools import pairwise

from ....common.system.json import as_object
from ....common.text.json_edit import StrictJsonError
from ....common.text.yaml_edit import parse_yaml
from ..install import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_OPTION, _NEVER = "--approval-mode", "yolo"
_SWITCHES = ("--auto-approve", "--yolo")  # of the same meaning as that mode
_FILES = ("config.yml", "config.yaml")


def asks(words: Sequence[str], config_dir: str) -> bool:
    """Return whether a process with this command line asks, by it or by the user's settings.

    A policy for a single tool applies in every mode. Settings of a project are not read."""
    tools = _tools(config_dir)
    policies = [value for value in as_object(tools.get("approval")).values() if value == "prompt"]
    given = [word.partition("=")[2] for word in words if word.startswith(f"{_OPTION}=")]
    given += [value for word, value in pairwise(words) if word == _OPTION]
    given += [_NEVER for word in words if word in _SWITCHES]
    mode = given[0] if given else tools.get("approvalMode", _NEVER)
    return bool(policies) or mode != _NEVER


def _tools(config_dir: str) -> dict[str, object]:
    """Return the settings of tools; empty if they cannot be read."""
    for name in _FILES:
        try:
            tools = as_object(parse_yaml(text_of(f"{config_dir}/{name}")).get("tools"))
        except (StrictJsonError, ImportError):
            continue
        if tools:
            return tools
    return {}
