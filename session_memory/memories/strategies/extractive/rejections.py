"""Rejections: things tried or decided and then given up, found by the words that say so. Pure."""

from __future__ import annotations

import re

from .cues import LEAD, VAGUE

_DROPPED = (
    r"(?:dropped (?:it|that|them|the idea|this)|went back|going back|gone back|moved back|switched back|reverted|"
    r"rolled (?:it |that |everything |them )?back|gave up|abandoned|ditched|"
    r"scrapped|threw (?:it|that|them) (?:out|away)|took (?:it|that|them) (?:out|back)|removed (?:it|that|them)|"
    r"ripped (?:it|that) out|backed (?:it|that) out|ruled (?:it|that) out|rejected|"
    r"(?:that|this|it|which|so that one|that one) (?:one )?is out|not an option|dead end|not worth|wasn'?t worth|"
    r"never again|no[- ]go|off the table|undid|"
    r"decided against|(?:won'?t|not) (?:be )?(?:using|use|do|doing|try|trying) (?:it|that|them)(?: again|"
    r" any ?more)?|had to (?:remove|revert|undo|drop|go back)|returned (?:it|them)|sent (?:it|them) back|"
    r"instead we|so we (?:now )?(?:use|stayed|kept|stuck|stay|keep)|so i (?:now )?(?:use|stayed|kept|stuck|stay|"
    r"keep|used)|stopped using|no longer use|left (?:it|them) out)"
)
_TOO = (
    r"(?:(?:was|were|is|are|got|became|proved|turned out|felt|sounded|looked|tasted|ran|"
    r"made)\b[^.;]{0,40}\b(?:too \w+|worse|slower|unusable|unreliable|a (?:mess|disaster|nightmare|pain)|"
    r"twice as \w+))"
)
_FAILED = (
    r"(?:(?:didn'?t|did not|doesn'?t|does not|never|won'?t) (?:really )?(?:work|help|scale|fit|hold|support|fly|"
    r"survive|cope)\w*|failed|broke|crashed|leaked|ran out of|lost|fell apart|could ?n[o']t|can'?t|cannot)"
)
_TRIED = re.compile(
    r"\b(?:i|we|they|he|she|you)(?:'ve| have| had|'d)?(?: already| also| once| even| briefly| first| actually|"
    r" both)* (?:tried(?: out| using| to use)?|tested|evaluated|"
    r"experimented with|prototyped|benchmarked|considered|used(?! to)|had|attempted|played with|moved to|"
    r"switched to|went with|started with|looked (?:at|into)|ran)\s+"
    rf"(?P<what>(?!{VAGUE}\b|to\b|again|and\b|everything|hard|all\b).+?)(?P<rest>(?:\s+(?:but|and|yet|although|"
    rf"though)\b|[,;:]|\s+[–—-]\s|$|\s+because\b|\s+which\b).*)$",
    re.IGNORECASE,
)
_GIVES_UP = re.compile(rf"\b{_DROPPED}\b", re.IGNORECASE)
_JUDGED = re.compile(_TOO, re.IGNORECASE)
_FAILS = re.compile(rf"\b{_FAILED}\b", re.IGNORECASE)
_REASON = re.compile(r"\b(?:because|since|due to|so (?:we|i|that)|as (?:it|they|the|we))\b", re.IGNORECASE)
_GOES_ON = re.compile(
    r"^(?:it|that|they|this|but|however|unfortunately|sadly|the result|turns out|both|which|so)\b", re.IGNORECASE
)
_REJECTED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # we decided against GraphQL
        r"\b(?:decided|voted|advised|am|are|is) against (?:using |the use of |going with )?(?P<what>\w.+)$",
        # we ruled out Datadog
        r"\b(?:we|i|they|team)(?:'ve| have| had)?(?: already| also| since| finally| explicitly)* (?:ruled out|"
        r"rejected|abandoned|ditched|scrapped|dismissed|discarded|gave up on|given up on|moved away from|"
        r"turned down|stopped using|got rid of)\s+(?P<what>(?!it\b|that\b|this\b|them\b)\w.+)$",
        # we dropped Kafka because it was too heavy
        r"\b(?:we|i)(?:'ve| have| had)?(?: already| also| since| finally)* dropped\s+(?P<what>(?!it\b|that\b|"
        r"this\b|them\b|a\b)(?:(?!\b(?:table|column|database|index|row|schema|off)s?\b).)+?\b(?:because|since|"
        r"in favou?r of|as it|due to)\b.*)$",
        # Datadog is off the table
        r"^(?P<what>(?!it\b|that\b|this\b|they\b|there\b|he\b|she\b)[\w`.'/-]+(?:\s[\w`.'/-]+){0,7}?)\s+(?:is|are|"
        r"was|were) (?:out|off the table|not an option|no option|a no[- ]go|a dead end|ruled out|rejected|"
        r"not acceptable)\b(?!\s+(?:of|in|for (?:a )?(?:week|day)))",
        # Redis did not work for us because it lost sessions
        r"^(?P<what>(?!it\b|that\b|this\b|they\b|there\b|he\b|she\b|what\b)[\w`.'/-]+(?:\s[\w`.'/-]+){0,7}?)\s+"
        r"(?:did ?n[o']t|did not|does ?n[o']t|does not|wo ?n[o']t|won't)\s+work(?:ed)?(?: out)?(?: for (?:us|"
        r"me))?(?: here)?[,:]?\s*(?:because|since|as (?:it|they|we|the)|due to)\b.+$",
        # drop Redis, it is too slow
        r"^(?:(?:ok|okay|no|nope|wait|actually|hm+|and|but|so|please|on second thought|"
        r"never ?mind)\b[\s,.:;!-]*)*(?:let'?s )?(?:drop|scrap|ditch|forget(?: about)?|abandon|remove|"
        r"no)\s+(?P<what>(?!it\b|that\b|this\b|them\b|what\b|everything\b|the (?:last|first|table|column|database|"
        r"index)\b)"
        r"[\w`.'/-]+(?:\s[\w`.'/-]+){0,5}?)(?:\s+again)?\s*(?:,|;|:|\s[–—-]\s|\bbecause\b|\bsince\b)\s*(?!and\b|"
        r"then\b|or\b|please\b|use\b|but\b|add\b|run\b|no\b).*\b(?:not|n't|too|never|no|cannot|without|already|"
        r"only|slow\w*|heavy|expensive|hate\w*|break\w*|lose\w*|costs?|complain\w*|licen[cs]e\w*|risk\w*|"
        r"fail\w*)\b.*$",
        # don't use Redis, it is too slow
        r"^(?:(?:ok|okay|no|nope|wait|actually|hm+|and|but|so|please)\b[\s,.:;!-]*)*(?:don'?t|do not|let'?s not|"
        r"we (?:can'?t|cannot|won'?t|don'?t want to)|we shouldn'?t|not)\s+(?:use|go with|take|go for|adopt|pick|"
        r"choose|switch to|move to)\s+"
        rf"(?P<what>(?!{VAGUE}\b)[\w`.'/@-]+(?:\s[\w`.'/@-]+){{0,6}}?)\s*(?:,|;|:|\s[–—-]\s|\.)?\s*\b(?:because|"
        rf"since|as (?:it|they|we|the)|it(?:'s| is| was| does| has)|they(?:'re| are)|too)\b.+$",
    )
)
_REVOKES = re.compile(
    rf"^{LEAD}(?:let'?s )?(?:drop|scrap|ditch|forget(?: about)?|abandon|remove|undo|revert|not|no|no more|without|"
    rf"get rid of|throw out|don'?t use|do not use|let'?s not use|stop using)\s+"
    r"(?P<what>[^,;:.]+)",
    re.IGNORECASE,
)
_TAKES_BACK = re.compile(
    r"^\W*(?:(?:no|nope|wait|actually|hm+|sorry|ugh|stop|ok|please|and|oh|that'?s (?:wrong|not it|bad|"
    r"worse))\b[\s,.:;!-]*)*(?:[^.!?]{0,60},\s*)?(?:please )?(?:can you )?"
    r"(?:revert|undo|roll (?:it |that |this )?back|take (?:it|that|this) (?:back|out)|scrap (?:it|that|this)|"
    r"drop (?:it|that|this)|forget (?:it|that|this)|remove (?:it|that|this) again|back (?:it|that) out|"
    r"put (?:it|that) back)\b",
    re.IGNORECASE,
)


def is_taken_back(sentence: str) -> bool:
    """Return whether a user undoes the last step without naming it."""
    return _TAKES_BACK.match(sentence) is not None


def revoked(sentence: str) -> str:
    """Return what a sentence says not to use or do; '' for nothing."""
    found = _REVOKES.match(sentence)
    return found["what"] if found else ""


def what_is_rejected(text: str) -> str:
    """Return what a rejection rejects, without the reason; '' if unclear."""
    for pattern in (_TRIED, *_REJECTED, _REVOKES):
        found = pattern.search(text)
        if found:
            return re.split(r"\b(?:because|since|but|for|as|in|due)\b|[,;:.]", found["what"])[0]
    return ""


def rejection(sentence: str, following: str, *, by_user: bool) -> str:
    """Return the words of a rejection in a sentence, or in it and the following one; '' for none. Ignores quotations.
    An assistant tries many things: only an explicit "gave up" counts for it."""
    tried = _TRIED.search(sentence)
    if tried and _is_given_up(tried["rest"], by_user=by_user):
        return sentence
    if tried and _GOES_ON.match(following) and _is_given_up(following, by_user=by_user):
        return f"{sentence} {following}"
    return sentence if by_user and any(pattern.search(sentence) for pattern in _REJECTED) else ""


def _is_given_up(outcome: str, *, by_user: bool) -> bool:
    """Return whether the outcome of an attempt means a rejection, not a problem still to fix."""
    if _GIVES_UP.search(outcome):
        return True
    is_judged = _JUDGED.search(outcome) or (_FAILS.search(outcome) and _REASON.search(outcome))
    return by_user and bool(is_judged)
