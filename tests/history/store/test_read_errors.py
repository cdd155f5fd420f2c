"""A read that the disk refuses does not prove damage: the store stays and loses nothing."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest
import share
from fork_server import run_forked
from records import exchange
from store_scene import MONDAY, StoreUser

from session_memory.history.store.sqlite.corruption import set_aside

SEED = random.randrange(10**6)
REFUSING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int reads;
/* Whether to refuse a read of memory.db or its log: the one with the number REFUSED, or each of the page REFUSED_PAGE. */
static int is_refused(int fd, off64_t at) {
    char link[64], path[4096];
    const char *number = getenv("REFUSED"), *page = getenv("REFUSED_PAGE");
    if (!number && !page) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    if (!strstr(path, "/memory.db") || strstr(path, ".queue") || strstr(path, "-shm")) return 0;
    reads++;
    return number ? reads == atoi(number) : at / 4096 == atoi(page);
}
ssize_t pread(int fd, void *buffer, size_t size, off_t at) {
    static ssize_t (*real)(int, void *, size_t, off_t);
    if (!real) real = dlsym(RTLD_NEXT, "pread");
    if (is_refused(fd, at)) { errno = EIO; return -1; }
    return real(fd, buffer, size, at);
}
ssize_t pread64(int fd, void *buffer, size_t size, off64_t at) {
    static ssize_t (*real)(int, void *, size_t, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "pread64");
    if (is_refused(fd, at)) { errno = EIO; return -1; }
    return real(fd, buffer, size, at);
}
"""


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that refuses reads; skips the test where none can be made, or none is loaded."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler or not Path("/proc/self/fd").is_dir():
        pytest.skip("needs a C compiler and /proc")
    place = tmp_path_factory.mktemp("refusing")
    (place / "refusing.c").write_text(REFUSING)
    command = [
        compiler,
        "-shared",
        "-fPIC",
        "-o",
        str(place / "refusing.so"),
        str(place / "refusing.c"),
        "-ldl",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"the compiler cannot make a library: {done.stderr[-200:]}")
    return place / "refusing.so"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> StoreUser:
    user = StoreUser(tmp_path_factory.mktemp("reads") / "user")
    for number in range(12):
        records = [
            one
            for turn in range(6)
            for one in exchange(
                f"cherry {number} {turn} " + "please " * 200, "gladly " * 300, at=MONDAY + turn
            )
        ]
        user.session(f"session-{number}", *records)
    assert user.run("ingest").returncode == 0
    for path in user.projects.rglob("*.jsonl"):
        path.unlink()
    assert user.run("ingest").returncode == 0
    return user


@pytest.mark.parametrize("what", ["REFUSED", "REFUSED_PAGE"])
def test_a_read_that_the_disk_refuses_sets_no_store_aside(machine, refusing, what):
    """One read, or all of one page: as of a sector that has gone bad."""
    inode = machine.database.stat().st_ino
    most = 60 if what == "REFUSED" else machine.database.stat().st_size // 4096
    for number in sorted(random.Random(SEED).sample(range(1, most), share.some(most - 1, 8))):
        for command in (("search", "cherry 7 3"), ("doctor", "store")):
            environ = {**machine.environment, what: str(number)}
            done = run_forked(command, environ, machine.home, preload=str(refusing))
            where = f"seed {SEED}, {what} {number}: {done.stderr.decode()}"
            assert b"Traceback" not in done.stderr, where
            assert done.returncode in (0, 1), where
            assert set_aside(str(machine.database)) == [], where
            assert machine.database.stat().st_ino == inode, where
    checked = machine.run("doctor", "store")
    assert (checked.returncode, "144 entries" in checked.stdout) == (0, True), checked.stdout
