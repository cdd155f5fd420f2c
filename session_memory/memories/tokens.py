"""How many tokens a text is at most, without any model's tokenizer. Pure.

Every provider counts differently, and none of them offline. In answers of real sessions whose tokens were reported a
token was 3.7 characters of prose on average, 3.5 with the model that counts most; newer models count up to a third
more for the same text. Outside ASCII a character can be more than one token. So the rule errs towards too many.
"""

from __future__ import annotations

ASCII_CHARACTERS_A_TOKEN = 2.5
TOKENS_AN_OTHER_CHARACTER = 1.5


def estimated_tokens(text: str) -> int:
    """An upper estimate of the tokens in `text`: one for 2.5 characters of ASCII, one and a half for any other."""
    if text.isascii():
        return _rounded_up(len(text) / ASCII_CHARACTERS_A_TOKEN)
    others = len(text) - len(text.encode("ascii", "ignore"))
    return _rounded_up((len(text) - others) / ASCII_CHARACTERS_A_TOKEN + others * TOKENS_AN_OTHER_CHARACTER)


def longest_within(text: str, tokens: int) -> int:
    """How many characters from the beginning of `text` are at most so many tokens; at least one, if it has any."""
    left = float(tokens)
    for index, character in enumerate(text):
        left -= 1 / ASCII_CHARACTERS_A_TOKEN if character.isascii() else TOKENS_AN_OTHER_CHARACTER
        if left < 0:
            return max(1, index)
    return len(text)


def _rounded_up(number: float) -> int:
    return -int(-number // 1)
