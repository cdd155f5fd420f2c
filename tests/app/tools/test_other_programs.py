"""The configuration that docs/use/other-programs.md gives for programs without hooks of ours."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/use/other-programs.md").read_text()
PARSERS = {"json": json.loads, "yaml": yaml.safe_load, "toml": tomllib.loads}
BLOCKS = re.findall(r"^### (.+?)\n\n```(\w+)\n(.+?)```", PAGE, re.MULTILINE | re.DOTALL)


def commands_in(value: Any) -> Iterator[list[str]]:
    """Yield the command line of each server in a configuration."""
    if isinstance(value, dict) and "command" in value:
        command = value["command"]
        yield command if isinstance(command, list) else [command, *value["args"]]
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from commands_in(item)


@pytest.mark.parametrize(
    ("form", "text"), [block[1:] for block in BLOCKS], ids=[block[0] for block in BLOCKS]
)
def test_a_configuration_starts_a_server_that_offers_the_tools(
    form: str, text: str, tmp_path: Path
) -> None:
    ((program, *arguments),) = commands_in(PARSERS[form](text))
    assert program == "session-memory"

    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    done = subprocess.run(
        [Path(sys.executable).with_name(program), *arguments],
        input=json.dumps(request) + "\n",
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    tools = [tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]]
    assert {"list_sessions", "search_sessions", "read_session", "why"} <= {*tools}


def test_every_form_that_the_page_refers_to_has_a_block() -> None:
    anchors = set(re.findall(r"\(#([\w-]+)\)", PAGE))
    assert anchors == {name.lower().replace(" ", "-") for name, _, _ in BLOCKS}
