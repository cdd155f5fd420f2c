"""Lines for people on a terminal."""

from __future__ import annotations

import pytest

from session_memory.common.system.terminal import Terminal


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/root/x: /root/y (/root/z), '/root/a b'", "~/x: ~/y (~/z), '~/a b'"),
        ("/mnt/root/x", "/mnt/root/x"),
        ("/root/root/x and /srv/backup/root/y", "~/root/x and /srv/backup/root/y"),
        ("/rooted/x", "/rooted/x"),
    ],
)
def test_a_path_below_the_home_directory_is_shortened_and_no_other(text: str, shown: str) -> None:
    assert Terminal({"HOME": "/root/"}).short(text) == shown
