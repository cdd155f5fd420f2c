"""A host with a Telegram bot that is killed at each point between Telegram and the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from fakes.fake_telegram import TOKEN, FakeTelegram
from host_scene import Echo, HostMachine

CHAT = 77


@pytest.fixture
def api() -> Iterator[FakeTelegram]:
    with FakeTelegram() as api:
        yield api


@pytest.fixture
def machine(api: FakeTelegram, bundled_cli: None) -> Iterator[HostMachine]:
    """A host whose group garden has a Telegram chat."""
    config = f"channels: [telegram]\ntelegram_api: {api.url}\nidle_seconds: 1\n"
    with Echo() as model, closing(HostMachine(model)) as machine:
        machine.init("main", config=config)
        assert machine.command("add", "garden", "--chat", f"telegram:{CHAT}").returncode == 0
        machine.environment["TELEGRAM_BOT_TOKEN"] = TOKEN
        yield machine


def test_killed_before_a_confirmation_and_while_a_reply_is_sent_it_loses_and_repeats_no_message(
    machine: HostMachine, api: FakeTelegram
) -> None:
    # Telegram's answer never arrives, so the update is given again to the next host.
    api.fail("getUpdates", "lose")
    api.write(CHAT, "plant m-bed-1")
    machine.start()
    machine.wait(lambda: api.calls_of("getUpdates") > 0, "poll")
    machine.kill(with_runtimes=True)
    # The model's answer is on its way to Telegram, and is not yet recorded as sent.
    api.held.clear()
    machine.start()
    machine.wait(lambda: api.texts(CHAT), "reply")
    machine.kill(with_runtimes=True)
    api.held.set()
    machine.start()
    machine.wait(lambda: not machine.ledger.undelivered() and not api.unconfirmed, "delivery")
    assert api.texts(CHAT) in (["m-bed-1"], ["m-bed-1", "m-bed-1"])
    assert [reply.text for reply in machine.ledger.replies()] == ["m-bed-1"]
    api.write(CHAT, "and m-bed-2")
    machine.wait(lambda: "m-bed-2" in api.texts(CHAT), "next reply")
    assert machine.stop() == 0
    assert TOKEN not in machine.output()
    rows = machine.ledger.connection.execute("SELECT count(*) FROM inbox").fetchall()
    assert rows == [(2,)]


def test_what_the_terminal_asks_is_answered_there_and_not_in_the_chat(
    machine: HostMachine, api: FakeTelegram
) -> None:
    machine.start()
    machine.wait(lambda: api.calls_of("getUpdates") > 0, "poll")
    said = machine.command("say", "garden", "plant m-bed-1")
    assert said.stdout.strip() == "m-bed-1", said.stderr
    api.write(CHAT, "plant m-bed-2")
    machine.wait(lambda: api.texts(CHAT), "reply in the chat")
    assert api.texts(CHAT) == ["m-bed-2"]
    tail = machine.command("tail", "garden", "--no-follow").stdout
    assert "m-bed-1" in tail
    assert "m-bed-2" in tail
    assert "without a group" not in machine.command("status").stdout


def test_status_asks_telegram_for_the_bot_when_told_to(
    machine: HostMachine, api: FakeTelegram
) -> None:
    assert "@anna_test_bot" in machine.command("status", "--check").stdout
    machine.environment["TELEGRAM_BOT_TOKEN"] = TOKEN[:-1] + "X"
    done = machine.command("status", "--check")
    assert done.returncode == 1
    assert "get a new one from @BotFather" in " ".join(done.stdout.split())
    assert TOKEN[:-1] not in done.stdout + done.stderr
