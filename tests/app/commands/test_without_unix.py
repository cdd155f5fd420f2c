"""Commands on systems without Unix features: no fork, no fcntl, no descriptors of directories.

This replaces tests on Windows, where the tests do not run.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from store_scene import StoreUser, trip

COMMANDS = [
    "ingest",
    "search cherry",
    "read 1",
    "sessions --all",
    "process",
    "memories",
    "archive --all",
    "status",
]
COMMANDS += ["health-check", "forget 8f3a-trip --yes", "ingest --reimport"]
PROGRAM = """
import contextlib, io, json, multiprocessing, os, posix, shutil, subprocess, sys, tempfile, types

for name in ("fork", "setsid", "pread", "pwrite", "fwalk", "statvfs", "nice", "getuid", "geteuid", "chown",
             "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"):
    delattr(os, name)
    if hasattr(posix, name):
        delattr(posix, name)
for name in ("fcntl", "pwd", "grp", "resource", "termios"):
    sys.modules[name] = None
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=lambda *_: None)
os.supports_fd, os.supports_dir_fd = set(), set()


def without_descriptor(call):
    def called(*given, **named):
        if any(named.get(name) is not None for name in ("dir_fd", "src_dir_fd", "dst_dir_fd")):
            raise NotImplementedError("dir_fd unavailable on this platform")
        return call(*given, **named)
    return called


for name in ("open", "stat", "unlink", "rename", "replace", "mkdir", "chmod"):
    setattr(os, name, without_descriptor(getattr(os, name)))

from session_memory.cli import main
from session_memory.history.store.location import find_location
from session_memory.app.upkeep.run import Run
from session_memory.app.upkeep.state_files import remove_leftovers

codes = {}
with contextlib.redirect_stdout(io.StringIO()):
    for line in sys.argv[1:]:
        codes[line] = main(line.split())
    remove_leftovers(Run(find_location(None, os.environ), print))
print(json.dumps(codes))
"""


def test_they_do_their_work(tmp_path: Path) -> None:
    user = StoreUser(tmp_path / "user")
    user.session("8f3a-trip", *trip())
    state = user.home / ".session-memory" / "state"
    left = state / ".config.12.tmp"
    state.mkdir(parents=True)
    left.write_text("")
    os.utime(left, (0, 0))
    done = user.run_command(sys.executable, "-c", PROGRAM, *COMMANDS)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == dict.fromkeys(COMMANDS, 0)
    assert not left.exists()
