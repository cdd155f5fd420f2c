"""Lines with Chinese and Japanese fit a terminal, and their columns begin in the same place."""

from __future__ import annotations

import re
import time

import pytest
from records import exchange
from store_scene import StoreUser

from session_memory.common.system.tables import HeadedRows, width_of
from session_memory.common.text.format import THEN

REQUESTS = {
    "/srv/店": "店の営業時間をフッターに表示して、休日も表示してください",
    "/srv/shop": "Show the opening hours of the shop in the footer, also on holidays",
}
LATER = "再読み込みの後にカートが空になる理由を調べてください、お願いします"
WIDTH = 80


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> StoreUser:
    owner = StoreUser(tmp_path_factory.mktemp("owner"))
    for number, (cwd, request) in enumerate(REQUESTS.items()):
        then = time.time() - 60 * (number + 1)  # the same message at the same time is a copy
        talk = [*exchange(request, "はい。", at=then, cwd=cwd)]
        talk += exchange(LATER, "はい。", at=then + 1, cwd=cwd)
        owner.session(f"s{number}", *talk, project=f"-srv-{number}")
    owner.run("ingest")
    return owner


@pytest.mark.parametrize("words", [[], ["agents", "--all"], ["since", "today"]])
def test_lines_fit_and_columns_are_aligned(owner: StoreUser, words: list[str]) -> None:
    listed = [line for line in owner.run(*words).stdout.splitlines() if "カート" in line]
    assert len(listed) == len(REQUESTS)
    for line in listed:
        assert width_of(line) <= WIDTH
        assert line.endswith(("…", '…"'))
    ends = [re.search(r"(店|shop):? +", line) for line in listed]
    assert len({width_of(line[: end.end()]) for line, end in zip(listed, ends) if end}) == 1


PATH = "/srv/shop/packages/checkout/src/components/CartSummaryTable.tsx"


@pytest.mark.parametrize(
    "title",
    [
        f"{PATH} fails{THEN}Add a factor for large orders",
        f"Add a factor for large orders{THEN}{PATH} fails",
        f"{PATH}{THEN}{PATH}",
    ],
)
@pytest.mark.parametrize("room", [40, 60, 80])
def test_two_requests_fit_if_one_begins_with_a_long_path(title: str, room: int) -> None:
    other = "Show me how the cart works today please"
    rows = [("ID", "PROJECT", "TITLE"), ("1", "shop", title), ("2", "shop", other)]
    for line in HeadedRows(rows).lines(room):
        assert width_of(line) <= room, line
