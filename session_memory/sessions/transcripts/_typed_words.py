"""Finds a person's words in a prompt with a program's additions.

Programs put blocks such as `<system_instruction>...` before the words, or wrap the words in
`<user_query>`. Only prompts that begin with a tag load this module."""

from __future__ import annotations

# Tags around the words of a person.
_OF_PERSON = frozenset(
    (
        "user_query",
        "user_input",
        "user_message",
        "user_request",
        "user_prompt",
        "user_question",
        "user_feedback",
        "user-memory-input",
    )
)
# A tag of several words is a program's if it contains one of these words. Fewer words count in tags
# with hyphens, because a person may paste components of a page.
_WORDS = """
    system reminder caveat notification instruction instructions hook context stdout stderr subagent mcp git aborted
"""
_MORE_WORDS = """
    action additional agent agents attached attachment attachments available codebase collaboration current cursor data
    datetime details diagnostics editor env environment file files guidelines ide info injected memories memory metadata
    mode notice open opened output permissions plugin plugins policy preferences project recommended repo repository
    rules runtime selected selection server servers session skill skills snapshot state status terminal tool tools
    workspace
"""
# after these the person's words may continue in the same line
_ALSO_IN_LINE = frozenset((*_WORDS.split(), "current", "datetime", "ide"))
_WITH_HYPHENS = frozenset(_WORDS.split())
_WITH_UNDERSCORES = _WITH_HYPHENS.union(_MORE_WORDS.split())
# begins a line that names the following field, in prompts made by DSPy: `[[ ## user_query ## ]]`
_FIELD = "[[ ## "
# begins words that were typed during a turn of Gemini CLI, before `<user_input>`
_TYPED_MEANWHILE = "User hint"
_OPENS_WORDS = tuple([f"<{name}>" for name in sorted(_OF_PERSON)])
_MARKS = ("[image]", "[document]")


def typed_words(text: str) -> str:
    """Return a prompt without a program's blocks before it and tags around it.

    Return '' if nothing is left. A block after the person's words stays, because they may have
    pasted it. A block that begins their sentence stays too."""
    text = _of_field(text.strip())
    if text.startswith(_TYPED_MEANWHILE) and "<user_input>" in text[:200]:
        text = text.partition("<user_input>")[2].partition("</user_input>")[0].strip()
    while text.startswith("<"):
        name, inside, behind = _block(text)
        if name in _OF_PERSON:
            text = "\n\n".join([part for part in (inside, behind) if part])
        elif behind.startswith(_OPENS_WORDS):
            text = behind
        elif _goes_on_in_line(text, behind):
            if not _is_of_program(name, _ALSO_IN_LINE):
                break
            text = behind
        elif _is_of_program(name) or (behind and _may_be_of_program(name)):
            text = behind
        else:
            break
    return text


def request_words(request: str) -> str:
    """Return a request without images and tagged blocks before it, unless nothing would be left.

    It does not matter who put them there."""
    words = _of_field(request.strip())
    while True:
        mark = next((mark for mark in _MARKS if words.startswith(mark)), "")
        name, _, behind = _block(words) if words.startswith("<") else ("", "", "")
        words, before = words[len(mark) :].lstrip() if mark else behind if name else words, words
        if not words or words == before:
            return words or before


def _of_field(text: str) -> str:
    """Return the field of the user's words, if the text has fields."""
    for name in _OF_PERSON if text.startswith(_FIELD) else ():
        _, mark, words = text.partition(f"{_FIELD}{name} ## ]]")
        if mark:
            return words.partition("\n" + _FIELD)[0].strip()
    return text


def _block(text: str) -> tuple[str, str, str]:
    """Return the name of the tag at the beginning of a text, its content, and the text after it.

    The name is '' if there is no closed tag."""
    opening, closes, inside = text[1:].partition(">")
    name = opening.split(None, 1)[0].rstrip("/") if opening.strip() else ""
    if not closes or not name.replace("-", "").replace("_", "").isalnum() or len(opening) > 2000:
        return "", "", ""
    end = inside.rfind(f"</{name}>") if name in _OF_PERSON else inside.find(f"</{name}>")
    if end < 0:
        return "", "", ""
    return name, inside[:end].strip(), inside[end + len(name) + 3 :].strip()


def _goes_on_in_line(text: str, behind: str) -> bool:
    """Check if the text `behind` a block begins in the block's last line."""
    return (
        bool(behind)
        and "\n" not in text[text.rfind(">", 0, len(text) - len(behind)) : len(text) - len(behind)]
    )


def _is_of_program(name: str, with_underscores: frozenset[str] = _WITH_UNDERSCORES) -> bool:
    """Check if a tag is surely a program's."""
    words = name.lower().replace("-", "_").split("_")
    known = _WITH_HYPHENS if "-" in name else with_underscores
    return len(words) > 1 and not known.isdisjoint(words)


def _may_be_of_program(name: str) -> bool:
    return "_" in name and name == name.lower()
