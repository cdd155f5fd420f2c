"""Lines for people on a terminal."""

from __future__ import annotations

import pytest

from session_memory.common.system.terminal import Terminal, print_error


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


def test_a_hint_names_the_command_as_it_was_called_and_leaves_paths_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["/opt/bin/session-memory", "rescue"])
    monkeypatch.setenv("PATH", "/usr/bin")
    print_error("no such id", "session-memory rescue --list lists them")
    print_error("no such id", "/opt/bin/session-memory rescue --list lists them")
    print_error("full", "delete ~/.session-memory or /var/session-memory first")
    assert capsys.readouterr().err.splitlines() == [
        "session-memory: no such id",
        "  /opt/bin/session-memory rescue --list lists them",
        "session-memory: no such id",
        "  /opt/bin/session-memory rescue --list lists them",
        "session-memory: full",
        "  delete ~/.session-memory or /var/session-memory first",
    ]
