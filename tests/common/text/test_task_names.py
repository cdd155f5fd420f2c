"""An issue is found in a text or a branch's name only if it certainly is one."""

from __future__ import annotations

import pytest

from session_memory.common.text.task_names import (
    branch_stem,
    issues_in,
    issues_of_branch,
    same_issue,
)


@pytest.mark.parametrize(
    ("text", "issues"),
    [
        ("fix #123", {"#123"}),
        ("Fix the cart (#12).", {"#12"}),
        ("work on issue 45, please", {"#45"}),
        ("Issue #7: the cart is empty", {"#7"}),
        ("review PR #8 and #77", {"#8", "#77"}),
        ("what is acme/shop#12 about?", {"acme/shop#12"}),
        ("see https://example.com/Acme/Shop/issues/12#issuecomment-5", {"acme/shop#12"}),
        ("https://example.com/group/sub/shop/-/merge_requests/3", {"sub/shop#3"}),
        ("SHOP-12: the cart is empty", {"SHOP-12"}),
        ("implement #7 of your list", set()),
        ("issue 3 of the review", set()),
        ("make it #333 and #102030", set()),
        ("write it as UTF-8 with SHA-256, see RFC-2119", set()),
        ("src/app.py#120 fails", set()),
        ("release notes for #12, #13, #14 and #15", set()),
        ("x " * 200 + "#123", set()),
        ("the year 2026, port 8080", set()),
        ("issue \u0661\u0662\u0663 is not a number of ours", set()),
    ],
)
def test_a_text_names_issues(text: str, issues: set[str]) -> None:
    assert issues_in(text) == issues


@pytest.mark.parametrize(
    ("issues", "others", "same"),
    [
        ({"#12"}, {"#12"}, "#12"),
        ({"#12"}, {"acme/shop#12"}, "#12"),
        ({"acme/shop#12"}, {"acme/site#12"}, ""),
        ({"#12"}, {"#123"}, ""),
        ({"SHOP-12"}, {"#12"}, ""),
        ({"SHOP-12"}, {"SHOP-12"}, "SHOP-12"),
        (set(), {"#12"}, ""),
    ],
)
def test_the_repository_counts_if_both_name_it(
    issues: set[str], others: set[str], same: str
) -> None:
    assert same_issue(issues, others) == same


@pytest.mark.parametrize(
    ("branch", "issues"),
    [
        ("123-cart", {"#123"}),
        ("fix/issue-123", {"#123"}),
        ("ann/fix-123-cart", {"#123"}),
        ("SHOP-12-cart", {"SHOP-12"}),
        ("release/2026-11", set()),
        ("sprint-12", set()),
        ("fix/cart-2", set()),
        ("main", set()),
    ],
)
def test_a_branch_names_an_issue(branch: str, issues: set[str]) -> None:
    assert issues_of_branch(branch) == issues


@pytest.mark.parametrize(
    ("branch", "stem"),
    [
        ("fix/login-form", "login-form"),
        ("ann/login_form-2", "login-form"),
        ("login-form-v3", "login-form"),
        ("api-phase-2", "api-phase-2"),
        ("fix/cart", ""),
        ("a-b", ""),
        ("12-34-5678", ""),
    ],
)
def test_a_branch_has_a_stem(branch: str, stem: str) -> None:
    assert branch_stem(branch) == stem
