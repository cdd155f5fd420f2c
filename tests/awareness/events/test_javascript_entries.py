"""The Python entries as the plugins in JavaScript start them: if one cannot start, nothing happens."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
CODE = """
const {{ SessionMemory }} = await import({plugin});
process.env.SESSION_MEMORY_PYTHON = "x".repeat(5000);
const hooks = await SessionMemory({{ directory: "/" }});
await hooks.event({{ event: {{ type: "session.created", properties: {{ info: {{ id: "s" }} }} }} }});
await new Promise((settle) => setTimeout(settle, 50));
console.log("goes on");
"""


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_an_interpreter_that_cannot_be_started_ends_no_session(tmp_path: Path) -> None:
    code = CODE.format(plugin=json.dumps(f"{REPOSITORY}/hooks/opencode/index.js"))
    node = shutil.which("node") or ""
    done = subprocess.run(
        [node, "--input-type=module", "--eval", code],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "goes on\n", "")
