"""What several test modules share: the fake API and a machine on which the real CLI runs against it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from claude_cli import Claude, claude_executable
from fakes.fake_anthropic import FakeAnthropic

pytest_plugins = ["runtime_table"]


@pytest.fixture(scope="session")
def fake_anthropic() -> Iterator[FakeAnthropic]:
    """One fake Messages API for all tests of a worker."""
    with FakeAnthropic() as api:
        yield api


@pytest.fixture
def api(fake_anthropic: FakeAnthropic) -> FakeAnthropic:
    """The fake Messages API, without requests or replies of an earlier test."""
    fake_anthropic.reset()
    return fake_anthropic


@pytest.fixture
def claude(tmp_path: Path, api: FakeAnthropic) -> Claude:
    """The real CLI with the pack's hooks installed for its user."""
    if claude_executable() is None:
        pytest.skip("the wheel of claude-agent-sdk that is installed carries no CLI")
    claude = Claude(tmp_path, api)
    claude.install_hooks()
    return claude
