"""The channel `telegram:` with an unreliable Bot API server.

It drops, repeats, refuses and is slow. No message is lost, and none is answered twice.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from fakes.fake_telegram import TOKEN, FakeTelegram
from host_scene import Told

from session_memory.extras.host._ledger import Ledger
from session_memory.extras.host._values import ChatReply
from session_memory.extras.host.channels import telegram as channel_module
from session_memory.extras.host.channels._bot_api import BotApi, BotApiError
from session_memory.extras.host.channels.channel import Chats, NotYetError
from session_memory.extras.host.channels.telegram import (
    MOST_UNITS,
    Telegram,
    TokenError,
    _parts_of,
    _token_in,
)
from session_memory.extras.host.settings import HostSettings

GARDEN, FAMILY = 77, -1001
WAIT_SECONDS = 60


class Phone:
    """A host's side of the channel: a ledger with the groups garden (chat 77) and family (a group
    chat that answers to @anna), and the channel as often as it is started."""

    def __init__(self, root: Path, api: FakeTelegram) -> None:
        self.root = root
        self.api = api
        self.log = Told(root)
        (root / ".session-memory").mkdir()
        token = root / ".session-memory" / "telegram-token"
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)
        self.ledger = Ledger(str(root / "messages.db"))
        self.ledger.register("garden", f"telegram:{GARDEN}", "garden", "", False)
        self.ledger.register("family", f"telegram:{FAMILY}", "family", r"@anna\b", True)

    def channel(self) -> Telegram:
        chats = Chats(self.ledger, lambda: None, self.log)
        return Telegram(str(self.root), HostSettings(telegram_api=self.api.url), chats)

    def serve(self, until: Callable[[], object]) -> None:
        """Serves until something is so, then ends as a stopped host does."""

        async def served() -> None:
            task = asyncio.create_task(self.channel().serve())
            deadline = time.monotonic() + WAIT_SECONDS
            while not until():
                assert time.monotonic() < deadline, f"{self.log.faults} {self.api.calls[-3:]}"
                if task.done():
                    task.result()
                await asyncio.sleep(0.01)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

        asyncio.run(served())

    def serve_all(self) -> None:
        """Serves until the server has nothing unconfirmed."""
        self.serve(lambda: self.api.unconfirmed == 0)

    def received(self, group: str = "garden") -> list[str]:
        """The texts that wait for the group's agent."""
        return [text for _, text, _ in self.ledger.waiting(group, 0)]

    def deliver(self, text: str, chat: int = GARDEN) -> ChatReply:
        """Has the channel deliver a text until it is sent, as the host does; the reply."""
        self.ledger.notify(f"telegram:{chat}", text)

        async def delivered() -> None:
            channel = self.channel()
            while waiting := self.ledger.undelivered():
                for reply in waiting:
                    try:
                        await channel.deliver(reply)
                    except NotYetError as error:
                        self.log.event(f"{error} ({error.seconds:g} s)")
                    else:
                        self.ledger.mark_delivered(reply.id)

        asyncio.run(delivered())
        return self.ledger.replies()[-1]


@pytest.fixture
def api() -> Iterator[FakeTelegram]:
    with FakeTelegram() as api:
        yield api


@pytest.fixture
def phone(tmp_path: Path, api: FakeTelegram, monkeypatch: pytest.MonkeyPatch) -> Iterator[Phone]:
    monkeypatch.setattr(channel_module, "FIRST_PAUSE_SECONDS", 0.01)
    phone = Phone(tmp_path, api)
    with closing(phone.ledger):
        yield phone


class TestMessages:
    def test_messages_come_in_order_with_sender_and_time(
        self, phone: Phone, api: FakeTelegram
    ) -> None:
        api.write(GARDEN, "plant beans")
        api.write(GARDEN, "and peas")
        phone.serve_all()
        assert phone.received() == ["plant beans", "and peas"]
        prompt = phone.ledger.next_prompt("garden")
        assert prompt is not None
        assert 'from="Ben Berg" at="2026-02-21T12:00:01.000Z"' in prompt.text

    def test_an_update_is_confirmed_only_after_its_message_is_on_disk(
        self, phone: Phone, api: FakeTelegram
    ) -> None:
        offsets = []
        real = phone.ledger.receive

        def receive(jid: str, text: str, **more: Any) -> str:
            offsets.append([body.get("offset") for method, body in api.calls if "offset" in body])
            return real(jid, text, **more)

        phone.ledger.receive = receive  # type: ignore[method-assign]
        api.write(GARDEN, "plant beans")
        phone.serve_all()
        assert offsets == [[]]
        assert api.calls[-1][1]["offset"] == 101

    def test_a_message_that_the_database_refuses_is_asked_for_again(
        self, phone: Phone, api: FakeTelegram
    ) -> None:
        real, refusals = phone.ledger.receive, [OSError("disk full")]

        def receive(jid: str, text: str, **more: Any) -> str:
            if refusals:
                raise refusals.pop()
            return real(jid, text, **more)

        phone.ledger.receive = receive  # type: ignore[method-assign]
        api.write(GARDEN, "plant beans")
        with pytest.raises(OSError, match="disk full"):
            phone.serve_all()
        assert api.unconfirmed == 1
        phone.serve_all()
        assert phone.received() == ["plant beans"]

    @pytest.mark.parametrize(
        "faults",
        [
            ["drop", "lose", "drop"],
            [(502, {"ok": False, "error_code": 502, "description": "Bad Gateway"})],
            [
                (
                    429,
                    {
                        "ok": False,
                        "error_code": 429,
                        "description": "Too Many Requests: retry after 0",
                        "parameters": {"retry_after": 0},
                    },
                )
            ],
            [(200, {"not": "an answer"}), (200, {"ok": True, "result": "no list"})],
        ],
        ids=["dropped", "bad gateway", "too many", "nonsense"],
    )
    def test_after_a_fault_of_the_connection_nothing_is_missing_and_nothing_twice(
        self, phone: Phone, api: FakeTelegram, faults: list[Any]
    ) -> None:
        api.fail("getUpdates", *faults)
        api.write(GARDEN, "plant beans")
        phone.serve(lambda: phone.received() and not api.unconfirmed)
        api.fail("getUpdates", *faults)
        api.write(GARDEN, "and peas")
        phone.serve_all()
        assert phone.received() == ["plant beans", "and peas"]

    def test_updates_that_come_twice_or_after_a_restart_are_the_same_message(
        self, phone: Phone, api: FakeTelegram
    ) -> None:
        api.write(GARDEN, "plant beans")
        api.fail("getUpdates", "lose")
        api.repeat()
        phone.serve(phone.received)
        phone.serve_all()
        assert phone.received() == ["plant beans"]

    def test_the_same_number_in_another_bots_chat_is_another_message(
        self, phone: Phone, api: FakeTelegram, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        api.write(GARDEN, "plant beans")
        phone.serve_all()
        other = TOKEN.replace("4242", "4343")
        (phone.root / ".session-memory" / "telegram-token").write_text(other)
        monkeypatch.setattr("fakes.fake_telegram.TOKEN", other)
        api.restart_numbers()
        api.write(GARDEN, "and peas")
        phone.serve_all()
        assert phone.received() == ["plant beans", "and peas"]

    def test_an_edit_of_a_waiting_message_replaces_its_text(
        self, phone: Phone, api: FakeTelegram
    ) -> None:
        number = api.write(GARDEN, "plant beens")
        api.edit(GARDEN, number, "plant beans")
        phone.serve_all()
        assert phone.received() == ["plant beans"]

    def test_an_edit_of_a_message_that_an_agent_has_comes_as_another_once(
        self, phone: Phone, api: FakeTelegram
    ) -> None:
        number = api.write(GARDEN, "plant beens")
        phone.serve_all()
        assert phone.ledger.next_prompt("garden")
        api.edit(GARDEN, number, "plant beens")  # such as a preview of a link
        api.edit(GARDEN, number, "plant beans")
        api.repeat()
        phone.serve_all()
        assert phone.received() == ["(edited) plant beans"]

    def test_a_photo_is_named_and_a_service_message_is_not_a_message(
        self, phone: Phone, api: FakeTelegram
    ) -> None:
        api.write(GARDEN, None, photo=[{"file_id": "x"}], caption="is this ripe?")
        api.write(GARDEN, None, voice={"file_id": "y"})
        api.write(GARDEN, None, new_chat_title="Plants")
        phone.serve_all()
        assert phone.received() == ["[photo] is this ripe?", "[voice]"]

    def test_updates_of_another_form_stop_nothing(self, phone: Phone, api: FakeTelegram) -> None:
        api.put({"message": {"message_id": 1}})
        api.put({"message": [], "x": None})
        api.put({"poll": {}})
        api.put({"message": {"message_id": 1, "date": "soon", "chat": {"id": "a", "type": 3}}})
        api.write(GARDEN, "plant beans")
        phone.serve_all()
        assert phone.received() == ["plant beans"]
        assert len(phone.log.faults) == 3


class TestGroups:
    @pytest.mark.parametrize(
        ("text", "more"),
        [
            (
                "@anna_test_bot beans?",
                {"entities": [{"type": "mention", "offset": 0, "length": 14}]},
            ),
            ("🌱 @Anna_Test_Bot?", {"entities": [{"type": "mention", "offset": 3, "length": 14}]}),
            (
                "/water@anna_test_bot",
                {"entities": [{"type": "bot_command", "offset": 0, "length": 20}]},
            ),
            (
                "Anna?",
                {
                    "entities": [
                        {"type": "text_mention", "offset": 0, "length": 4, "user": {"id": 4242}}
                    ]
                },
            ),
            ("yes", {"reply_to_message": {"message_id": 1, "from": {"id": 4242}}}),
            ("so says @anna", {}),
        ],
        ids=["mention", "after an emoji", "command", "by name", "reply", "trigger"],
    )
    def test_a_message_for_the_bot_is_answered_with_those_before_it(
        self, phone: Phone, api: FakeTelegram, text: str, more: dict[str, Any]
    ) -> None:
        api.write(FAMILY, "nice weather", "supergroup")
        phone.serve_all()
        assert phone.ledger.ready_groups() == set()
        api.write(FAMILY, text, "supergroup", **more)
        phone.serve_all()
        assert phone.ledger.ready_groups() == {"family"}
        prompt = phone.ledger.next_prompt("family")
        assert prompt is not None
        assert "nice weather" in prompt.text

    @pytest.mark.parametrize(
        ("text", "more"),
        [
            ("@anna_test_botany", {"entities": [{"type": "mention", "offset": 0, "length": 17}]}),
            (
                "/water@other_bot",
                {"entities": [{"type": "bot_command", "offset": 0, "length": 16}]},
            ),
            ("yes", {"reply_to_message": {"message_id": 1, "from": {"id": 7}}}),
        ],
        ids=["other name", "command of another bot", "reply to a person"],
    )
    def test_a_message_for_others_waits(
        self, phone: Phone, api: FakeTelegram, text: str, more: dict[str, Any]
    ) -> None:
        api.write(FAMILY, text, "supergroup", **more)
        phone.serve_all()
        assert phone.ledger.ready_groups() == set()

    def test_is_group_says_whether_a_chat_has_several_people(
        self, phone: Phone, api: FakeTelegram
    ) -> None:
        api.write(GARDEN, "beans")
        api.write(FAMILY, "beans", "supergroup")
        phone.serve_all()
        rows = phone.ledger.connection.execute("SELECT jid, is_group FROM chats ORDER BY jid")
        assert rows.fetchall() == [(f"telegram:{FAMILY}", 1), (f"telegram:{GARDEN}", 0)]

    def test_an_unknown_chat_is_logged_once_also_after_a_restart(
        self, phone: Phone, api: FakeTelegram
    ) -> None:
        for text in ("hello", "anyone?"):
            api.write(-5, text, "group")
            phone.serve_all()
        assert [line for line in phone.log.events if "no group answers" in line] == [
            "telegram:-5: no group answers here; session-memory host add GROUP --chat telegram:-5 "
            "makes one"
        ]
        assert [chat.jid for chat in phone.ledger.strangers()] == ["telegram:-5"]

    @pytest.mark.parametrize("is_told_first", [True, False])
    def test_a_group_that_becomes_a_supergroup_keeps_its_agent(
        self, phone: Phone, api: FakeTelegram, is_told_first: bool
    ) -> None:
        if is_told_first:
            api.write(FAMILY, None, "group", migrate_to_chat_id=-2002)
            phone.serve_all()
            phone.deliver("Watered.", FAMILY)
        else:
            refusal = {
                "ok": False,
                "error_code": 400,
                "description": "Bad Request: group chat was upgraded to a supergroup chat",
                "parameters": {"migrate_to_chat_id": -2002},
            }
            api.fail("sendMessage", (400, refusal))
            phone.deliver("Watered.", FAMILY)
        assert api.sent == [(-2002, "Watered.")]
        assert phone.ledger.group("family").jid == "telegram:-2002"
        assert phone.ledger.strangers() == []
        api.write(-2002, "@anna beans", "supergroup")
        phone.serve_all()
        assert phone.received("family") == ["@anna beans"]


class TestReplies:
    def test_a_long_reply_comes_in_parts_of_4096_utf_16_units(
        self, phone: Phone, api: FakeTelegram
    ) -> None:
        text = "\n".join(f"line {number} 🌱🌱" for number in range(1000))
        phone.deliver(text)
        assert len(api.sent) > 3
        assert "\n".join(api.texts(GARDEN)) == text

    @pytest.mark.parametrize(
        "text",
        [
            "a" * 4096,
            "a" * 4097,
            "🌱" * 2049,
            "a" * 4095 + "🌱",
            "\ud83c",
            " \n ",
            "",
            "x" + " " * 9000,
        ],
        ids=[
            "fits",
            "one over",
            "pairs",
            "pair on the edge",
            "half a pair",
            "blank",
            "empty",
            "spaces",
        ],
    )
    def test_a_part_is_never_too_long_blank_or_half_a_character(self, text: str) -> None:
        parts = list(_parts_of(text))
        assert all(part.strip() for part in parts)
        assert all(len(part.encode("utf-16-le")) // 2 <= MOST_UNITS for part in parts)
        kept = text.replace("\ud83c", "\ufffd").strip()
        assert "".join(parts) == kept

    def test_a_reply_in_a_group_names_the_message_that_it_answers(
        self, phone: Phone, api: FakeTelegram
    ) -> None:
        number = api.write(FAMILY, "@anna beans?", "supergroup")
        phone.serve_all()
        prompt = phone.ledger.next_prompt("family")
        assert prompt is not None
        phone.ledger.answer([prompt], "In May.")
        phone.deliver("And peas in April.", FAMILY)
        assert [one.get("reply_parameters", {}).get("message_id") for one in api.sendings] == [
            number,
            None,
        ]

    @pytest.mark.parametrize("fault", ["drop", (500, {"ok": False, "error_code": 500})])
    def test_a_reply_that_was_not_accepted_is_sent_again(
        self, phone: Phone, api: FakeTelegram, fault: Any
    ) -> None:
        api.fail("sendMessage", fault)
        phone.deliver("Watered.")
        assert api.sent == [(GARDEN, "Watered.")]

    def test_a_lost_confirmation_repeats_one_part_and_not_the_reply(
        self, phone: Phone, api: FakeTelegram
    ) -> None:
        text = "a" * 4096 + "b" * 4096 + "c"
        api.fail("sendMessage", "", "lose")
        phone.deliver(text)
        assert [part[0] for part in api.texts(GARDEN)] == ["a", "b", "b", "c"]

    def test_a_rate_limit_is_waited_for_as_long_as_telegram_says(
        self, phone: Phone, api: FakeTelegram
    ) -> None:
        limit = {
            "ok": False,
            "error_code": 429,
            "description": "Too Many Requests: retry after 17",
            "parameters": {"retry_after": 17},
        }
        api.fail("sendMessage", (429, limit))
        phone.deliver("Watered.")
        assert "sendMessage: 429 Too Many Requests: retry after 17 (17 s)" in phone.log.events
        assert api.sent == [(GARDEN, "Watered.")]

    def test_a_reply_that_telegram_never_takes_does_not_hold_up_others(
        self, phone: Phone, api: FakeTelegram
    ) -> None:
        refusal = {"ok": False, "error_code": 400, "description": "Bad Request: chat not found"}
        api.fail("sendMessage", (400, refusal))
        phone.ledger.notify(f"telegram:{GARDEN}", "lost")
        phone.deliver("Watered.")
        assert api.texts(GARDEN) == ["Watered."]
        assert "chat not found" in phone.log.faults[0]


class TestTheToken:
    def test_no_error_and_no_log_contains_it(self, phone: Phone, api: FakeTelegram) -> None:
        secret = TOKEN.partition(":")[2]
        for token in (TOKEN, TOKEN[:-1] + "X"):
            for url in (api.url, "http://127.0.0.1:9", "http://[broken", "http://127.0.0.1:9/a b"):
                api.fail("getMe", "drop")
                with pytest.raises(BotApiError) as caught:
                    BotApi(url, token).call_now("getMe")
                shown = f"{caught.value!r} {caught.value.__cause__!r} {caught.value.hint}"
                assert secret[:-1] not in shown
        api.fail("getUpdates", "drop", (502, {"description": f"proxy: /bot{TOKEN}/ failed"}))
        api.write(GARDEN, "beans")
        phone.serve_all()
        assert secret not in "".join(phone.log.faults + phone.log.events)

    @pytest.mark.parametrize(
        ("mode", "text", "says"),
        [
            (0o644, TOKEN, "chmod 600"),
            (0o640, TOKEN, "chmod 600"),
            (None, TOKEN, "TELEGRAM_BOT_TOKEN"),
            (0o600, "not a token", "such as 123456:ABC-DEF"),
        ],
    )
    def test_a_wrong_token_file_is_refused_with_what_to_do(
        self, phone: Phone, mode: int | None, text: str, says: str
    ) -> None:
        path = phone.root / ".session-memory" / "telegram-token"
        path.unlink()
        if mode is not None:
            path.write_text(text)
            path.chmod(mode)
        with pytest.raises((TokenError, BotApiError)) as caught:
            phone.serve(lambda: False)
        assert says in f"{caught.value} {caught.value.hint}"

    def test_a_link_to_another_file_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "key").write_text(TOKEN)
        (tmp_path / "key").chmod(0o600)
        (tmp_path / "link").symlink_to(tmp_path / "key")
        with pytest.raises(TokenError):
            _token_in(str(tmp_path / "link"))

    def test_the_variable_is_taken_out_of_the_environment_that_agents_inherit(
        self, phone: Phone, api: FakeTelegram, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
        (phone.root / ".session-memory" / "telegram-token").unlink()
        api.write(GARDEN, "beans")
        phone.serve_all()
        assert phone.received() == ["beans"]
        assert "TELEGRAM_BOT_TOKEN" not in os.environ

    @pytest.mark.parametrize(
        ("code", "description", "says"),
        [
            (401, "Unauthorized", "get a new one from @BotFather"),
            (404, "Not Found", "get a new one from @BotFather"),
        ],
    )
    def test_an_unknown_token_ends_the_channel_with_what_to_do(
        self, phone: Phone, api: FakeTelegram, code: int, description: str, says: str
    ) -> None:
        refusal = {"ok": False, "error_code": code, "description": description}
        api.fail("getMe", (code, refusal))
        with pytest.raises(BotApiError, match=says):
            phone.serve(lambda: False)

    def test_another_program_with_the_same_token_is_named_and_waited_for(
        self, phone: Phone, api: FakeTelegram
    ) -> None:
        conflict = {
            "ok": False,
            "error_code": 409,
            "description": "Conflict: terminated by other getUpdates request",
        }
        api.fail("getUpdates", (409, conflict))
        api.write(GARDEN, "beans")
        phone.serve_all()
        assert phone.received() == ["beans"]
        assert "another program receives this bot's messages" in phone.log.faults[0]
