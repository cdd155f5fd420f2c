"""Names of a task in a text or a branch: the numbers of issues, and the stem of a branch's name."""

from __future__ import annotations

SUBJECT_CHARACTERS = 400  # of a text, in which it names its subject
LINK_CHARACTERS = 4000  # of a text, in which links are looked for
MOST_ISSUES = 3  # a text that names more is about none of them
SHORTEST_STEM = 8
_LOWEST_NUMBER = 10  # without a mark, a lower one counts the points of a list
_LINKS = ("/issues/", "/pull/", "/pulls/", "/merge_requests/", "/work_items/", "/pull-requests/")
_KINDS = ("issue", "bug", "ticket", "pr", "mr", "gh", "request")
_COUNTED_KINDS = ("issue", "bug", "ticket", "pr", "mr")  # also without a mark
_MARKED_KINDS = (*_KINDS, "fix", "fixes", "feat", "feature", "task", "story")  # in a branch's name
# capital letters before a number that mean something other than an issue
_NO_KEYS = (
    *("ADR", "AES", "BASE", "CPU", "CVE", "DES", "ES", "GB", "GPT", "HTTP", "IEC", "IEEE", "IPV"),
    *("ISO", "LTE", "MB", "MD", "MP", "MPEG", "PEP", "PHASE", "PY", "RFC", "RSA", "SHA", "SPRINT"),
    *("STEP", "TASK", "TASKS", "TLS", "UCS", "UTC", "UTF", "VT", "WCAG", "WIN"),
)
_EDGES = "\"'`()[]{}<>,;:!?.*_~"
_PARTS = ("part", "phase", "step", "stage", "sprint", "milestone", "week", "day", "wave", "batch")


def issues_in(text: str) -> set[str]:
    """Return the issues and pull requests that a text is about.

    An issue is `#12`, `acme/app#12` if the text names the repository, or `SHOP-12`. A text that
    names more than MOST_ISSUES is about none."""
    issues: set[str] = set()
    kind = ""
    for word in text[:SUBJECT_CHARACTERS].split():
        word = word.strip(_EDGES)
        issues.update(_issue(word, kind))
        kind = word.casefold()
    for word in text[:LINK_CHARACTERS].split():
        issues.update(_linked(word))
    return issues if len(issues) <= MOST_ISSUES else set()


def same_issue(issues: set[str], others: set[str]) -> str:
    """Return an issue that is in both, in a text's form, or ''.

    A number without a repository may be any repository's."""
    for issue in sorted(issues):
        for other in sorted(others):
            repository, mark, number = issue.rpartition("#")
            another, other_mark, other_number = other.rpartition("#")
            is_same = (mark, number) == (other_mark, other_number)
            if is_same and (repository == another or not repository or not another):
                return issue
    return ""


def issues_of_branch(branch: str) -> set[str]:
    """Return the issue in a branch's name, as in `123-cart`, `fix/issue-123` or `ann/SHOP-12-cart`."""
    name = branch.rpartition("/")[2]
    words = name.replace("_", "-").split("-")
    number = next((word for word in words if word.isascii() and word.isdecimal()), "")
    at = words.index(number) if number else 0
    if not number or len(number) > 5 or int(number) < _LOWEST_NUMBER:
        return set()
    if at == 1 and _is_key(words[0]):
        return {f"{words[0]}-{number}"}
    is_marked = at > 0 and words[at - 1].casefold() in _MARKED_KINDS
    is_first = at == 0 and len(words) > 1 and not (len(number) == 4 and number.startswith("20"))
    return {f"#{number}"} if is_marked or is_first else set()


def branch_stem(branch: str) -> str:
    """Return the part that the names of branches for one task share: `login-form` for `fix/login-form-2`.

    Return '' for a name that says too little."""
    words = branch.rpartition("/")[2].casefold().replace("_", "-").split("-")
    last = words[-1].removeprefix("v")
    if last.isdecimal() and len(words) > 2 and words[-2] not in _PARTS:
        del words[-1]
    stem = "-".join(words)
    has_words = sum(any(character.isalpha() for character in word) for word in words) > 1
    return stem if has_words and len(stem) >= SHORTEST_STEM else ""


def _issue(word: str, kind: str) -> set[str]:
    """Return the issue that a word names after the word `kind`."""
    before, mark, number = word.rpartition("#")
    if number.endswith("'s"):
        number = number[:-2]
    if not (number.isascii() and number.isdecimal()) or len(number) > 6:
        return _key(word)
    if not mark:
        return {f"#{number}"} if kind in _COUNTED_KINDS and int(number) >= _LOWEST_NUMBER else set()
    if before:
        is_repository = before.count("/") == 1 and "." not in before
        if before.casefold() in _KINDS:
            return {f"#{number}"}
        return {f"{before.casefold()}#{number}"} if is_repository else set()
    is_color = len(number) == 6 or (len(number) == 3 and len(set(number)) == 1)
    is_sure = 1 < len(number) < 6 and not is_color
    return {f"#{number}"} if is_sure or kind in _KINDS else set()


def _key(word: str) -> set[str]:
    """Return the key of a tracker, as SHOP-12, that a word is."""
    letters, _, number = word.partition("-")
    is_number = number.isascii() and number.isdecimal() and len(number) <= 6
    return {word} if is_number and _is_key(letters) else set()


def _is_key(letters: str) -> bool:
    is_word = letters.isascii() and letters.isalpha() and letters.isupper()
    return is_word and 2 <= len(letters) <= 10 and letters not in _NO_KEYS


def _linked(word: str) -> set[str]:
    """Return the issue that a link in a word leads to."""
    if "://" not in word:
        return set()
    for part in _LINKS:
        before, separator, after = word.partition(part)
        digits = after[: len(after) - len(after.lstrip("0123456789"))]
        if separator and digits:
            path = before.partition("://")[2].removesuffix("/-").split("/")[1:]
            return {f"{'/'.join(path[-2:]).casefold()}#{digits}"}
    return set()
