"""Estimate tokens without a model's tokenizer: an upper bound.

Providers count differently, and none offers its tokenizer offline. In real sessions with reported
usage, a token was 3.7 characters of prose on average, 3.5 with the model that counts most; newer
models count up to a third more for the same text. Outside ASCII, one character can be several
tokens. The estimate is deliberately too high."""

from math import ceil

CHARACTERS_PER_TOKEN = 4  # of English and code, about: no upper bound
ASCII_CHARACTERS_A_TOKEN = 2.5
TOKENS_AN_OTHER_CHARACTER = 1.5


def estimated_tokens(text: str) -> int:
    """Return an upper estimate of the tokens in `text`.

    It counts one token per 2.5 ASCII characters, and 1.5 for any other character."""
    if text.isascii():
        return ceil(len(text) / ASCII_CHARACTERS_A_TOKEN)
    others = len(text) - len(text.encode("ascii", "ignore"))
    return ceil(
        (len(text) - others) / ASCII_CHARACTERS_A_TOKEN + others * TOKENS_AN_OTHER_CHARACTER
    )


def longest_within(text: str, tokens: int) -> int:
    """Return the length of the longest prefix of `text` within `tokens`; at least 1 unless it is
    empty."""
    left = float(tokens)
    for index, character in enumerate(text):
        left -= 1 / ASCII_CHARACTERS_A_TOKEN if character.isascii() else TOKENS_AN_OTHER_CHARACTER
        if left < 0:
            return max(1, index)
    return len(text)
