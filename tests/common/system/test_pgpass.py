"""In the password file of libpq, only our line changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_memory.common.system.pgpass import address_of, keep_password


@pytest.mark.parametrize(
    "part",
    ["ann:a%0Ab@db/team", "ann:a@db/team?user=a%0D", "ann@db/te%0Aam", "ann@db/team?password=a%00"],
)
def test_an_address_with_a_line_break_is_none(part: str) -> None:
    with pytest.raises(ValueError, match="a line break"):
        address_of(f"postgresql://{part}")


def test_the_lines_of_others_stay_to_the_byte_also_behind_a_link(tmp_path: Path) -> None:
    others = "db:5432:team:bob:a\u2028b\x85c\x0bd\r\n\n# mine\ndb:1:*:*:\xe9".encode(
        "latin-1", "xmlcharrefreplace"
    )
    kept = tmp_path / "dotfiles"
    kept.write_bytes(b"db:5432:team:ann:old\n" + others + b"\n")
    (tmp_path / ".pgpass").symlink_to(kept)
    keep_password(address_of("postgresql://ann:new@db/team"), {"HOME": str(tmp_path)})
    assert kept.read_bytes() == b"db:5432:team:ann:new\n" + others + b"\n"
    assert (tmp_path / ".pgpass").is_symlink()
