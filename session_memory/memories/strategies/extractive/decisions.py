"""Decisions: a user's choice, in their own words or by accepting a proposal of the assistant. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .cues import LEAD, START, VAGUE

LAST_SENTENCES = 6  # of an answer, searched for a proposal
FEWEST_OPTIONS = 2

_TECHNICAL = (
    rf"(?!{VAGUE}\b|(?:the|a|an) (?:other|same|first|second|third|last|next|new|old|latter|former)\b|one\b|your\b|"
    rf"what\b|whatever\b|both\b|(?:the|your|this) (?:fix|plan|recommend\w+|suggest\w+|defaults?|approach|changes?|flow|"
    rf"proposal|idea|solution|safer? \w+|simple\w* \w+|minimal \w+)\b[.!]*$)"
)
_CHOSEN = (
    r"(?:go(?:ing)? with|us(?:e|ing)|keep|stick(?:ing)? (?:with|to)|stay(?:ing)? (?:with|on)|drop|"
    r"switch(?:ing)? (?:over )?to|"
    r"mov(?:e|ing) (?:over )?to|adopt|pick|choose|settl(?:e|ing) (?:on|for)|target|default to|standardi[sz]e on|"
    r"call|name|"
    r"take|book|order|buy|place|store|put|do without|split|meet|stop using|base|paint|limit|cap|ship)"
)
_NO_CHOICE = (
    r"(?!\s+(?:going|it\b|on\b(?!\s\w+\s(?:server|host))|at it|trying|looking|working|that\b|this\b|you\b|me\b|"
    r"an eye|in (?:mind|touch)|a (?:look|step|"
    r"break|minute|moment|deep|closer|quick|note|walk|nap|pause|backup|copy|snapshot|picture)|care|time|stock|"
    r"turns|them\b(?! in| under|"
    r" along| next)|these\b|those\b|the (?:tests?|linter|app|server|build|call|bus now)\s*[.!]*$|calm|quiet|up\b|"
    r"down\b|off\b|out\b|track|"
    r"back\b|everything up|our (?:heads|fingers)|simple|things simple|some time|one\b|a day))"
)
_REASON = r"\b(?:so that|so (?:we|it|they|nobody|nothing)|because|since)\b"
_DECISIONS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # let's go with SQLite
        rf"{START}(?:let'?s|lets) (?:all |please |just |then |now |instead |"
        rf"also )*{_CHOSEN}{_NO_CHOICE}\s+{_TECHNICAL}\S",
        # let's not add a cache
        rf"{START}(?:let'?s|lets) not (?:use|add|have|support|ship|go with|depend on|rely on|store|cache|mock|"
        rf"rewrite|introduce)\s+{_TECHNICAL}\S",
        # we decided to keep logs for 30 days
        r"\b(?:we|i)(?:'ve| have)?(?: finally| now| just| also| all| both| unanimously)* (?:decided|agreed|opted|"
        r"chose|voted) (?:to\b|on\b|for\b|that\b)"
        r"(?!\s+(?:disagree|wait|see|ask|stop here|take a break|give up|go home|let you|try|come|check))",
        # we settled on Postgres
        r"\b(?:we|i)(?:'ve| have)? (?:settled on|gone with|chosen|picked|standardi[sz]ed on)\s+(?!it\b|this\b|that\b)",
        # we're going with the night train
        rf"{START}(?:we(?:'re| are)|i(?:'m| am)) going (?:to go )?with\s+{_TECHNICAL}",
        # we'll use UUIDs
        rf"{START}(?:we|i)(?:'ll| will| shall) (?:just |then |all )*(?:go with|stick (?:with|to)|stay (?:with|on)|"
        rf"use|keep|take|settle on|move to|"
        rf"switch to|name|call|standardi[sz]e on|deploy to|ship|drop support){_NO_CHOICE}\s+{_TECHNICAL}\S",
        # use uv instead of pip
        rf"^{LEAD}(?:please )?(?:use|take|pick|choose|prefer)\s+{_TECHNICAL}(?!.*\b(?:this time|here\?|"
        rf"for this one))\S.{{1,60}}?(?:\binstead of\b|\brather than\b|, not|, no(?! (?:need|matter|problem|wor|rush|"
        r"idea|doubt|hurry|excuse|exception|question)))\s+"
        rf"(?!{VAGUE}\b|your\b|the (?:other|old|current) one|just\b|only\b|yet\b|now\b)\S",
        # switch to podman for all builds
        rf"^{LEAD}(?:please )?(?:switch|migrate|move)\s+(?:over |everything |"
        rf"all \w+ )?(?:from \S+(?: \S+){{0,3}} )?to\s+{_TECHNICAL}(?:[\w.@/`-]+\s*){{1,5}}?"
        r"(?:instead\b|rather than\b|for (?:all|every|everything)\b|everywhere\b|because\b|since\b|, (?:since|"
        r"because|as)\b)",
        # go with luxon
        rf"^{LEAD}(?:please )?go with\s+{_TECHNICAL}(?!the flow|your|option|[A-D1-9]\b)\S{{2,}}",
        # SQLite it is
        rf"^{LEAD}(?!what|this|that|how|so|here|there)(?:[\w.@/`'-]+\s){{1,5}}it is(?: then)?[.!]*$",
        # no, we should copy it
        r"^no,? (?:thanks,? )?we (?:should|want to|need to|must|do) (?!be able|see|know|check|look|have (?:seen|a)|"
        r"wait|talk|find|understand|fix|first)",
        # we should use the session's own id
        rf"{START}we (?:should|want to) (?:just |also |rather |then |only )*(?:use|go with|keep|stick (?:with|to)|"
        rf"stay with|drop(?! by\b)|switch to|move to|adopt|settle on|default to|standardi[sz]e on|rename|"
        rf"not (?:use|add|support|depend on|rely on|cache|mock|introduce)){_NO_CHOICE}\s+"
        rf"(?!(?:the|a|our|some) (?:time|chance|opportunity|door|few|bit|bathroom)\b){_TECHNICAL}\S",
        # we want a queue on disk so that nothing is lost
        rf"{START}we want (?:an? |the )?{_TECHNICAL}(?!to\b)\S.{{4,}}{_REASON}",
        # I want the example to use SQLite, so that it runs anywhere
        rf"{START}(?:we|i) want (?:the|our|all|every|each)(?: [\w.@/`'-]+){{1,5}} to (?:use|be|live in|"
        rf"run on|return|take|default to) {_TECHNICAL}\S.{{4,}}{_REASON}",
        # we go server-first
        rf"{START}we (?:do|go|build|stay)(?: for)? [\w./]+-(?:first|only)\b",
        # we explicitly keep both
        rf"{START}we (?:explicitly|definitely|deliberately|intentionally|purposely) (?:don'?t|do not|want|use|keep|"
        rf"leave|chose)\b",
        # decision: no plugins in the first release
        r"^(?:the )?(?:final )?decision(?: is)?:?\s+(?!pending|not|open|tomorrow|still|to be)\w+.{8,}",
    )
)
_NOT_YET = re.compile(
    r"\b(?:(?<!-)first[,.!]*$|yet\b|later[.!]*$|tomorrow|tonight|in a minute|for a (?:sec|second|minute|moment))",
    re.IGNORECASE,
)
_AGREES = re.compile(
    r"^\W*(?:(?:yes|yep|yeah|yup|sure|ok(?:ay)?|agreed|absolutely|definitely|of course|sounds (?:good|great|right|"
    r"perfect)|"
    r"perfect|great|good(?: idea| plan)?|nice|go ahead|go for it|please do|please|do (?:it|that|so)|"
    r"let'?s do (?:it|that|this)|works for me|fine(?: by me| with me)?|i like (?:it|that)|that works|makes sense|"
    r"approved|lgtm|\+1|👍|then do that|"
    r"thanks|thank you|and|exactly|correct|right|you'?re right|that'?s (?:right|fine|good|better|"
    r"perfect))\b[\s,.!:;-]*)+$|^\W*👍\W*$",
    re.IGNORECASE,
)
_PROPOSES = re.compile(
    r"^(?:(?:so|then|ok|okay|alternatively|if you like|if you want|instead|therefore|here|for (?:this|that|"
    r"your case)|given that),?\s+)*"
    r"(?:(?:should|shall|can|may) (?:i|we) (?:then |just |instead )?|(?:do you want|would you like|want) (?:me|us) to |"
    r"my (?:recommendation|"
    r"suggestion|proposal|advice) is (?:to )?|"
    r"(?:we|you|i) (?:should|could|can) (?:then |just |instead )?)"
    r"(?P<what>(?:us(?:e|ing)|go(?:ing)? with|keep(?:ing)?|switch(?:ing)? to|stick(?:ing)? (?:with|to)|stor(?:e|"
    r"ing)|cach(?:e|ing)|mov(?:e|ing) to|replac(?:e|ing)|"
    r"drop(?:ping)?|pick(?:ing)?|tak(?:e|ing)|choos(?:e|ing)|split(?:ting)?|call(?:ing)?|nam(?:e|ing)|"
    r"adopt(?:ing)?|writ(?:e|ing) (?:it|them|everything) in|"
    r"book(?:ing)?|limit(?:ing)?|requir(?:e|ing)|treat(?:ing)?|index(?:ing)?|pin(?:ning)?|host(?:ing)?|"
    r"paint(?:ing)?|a|an|the)\b.{4,})$",
    re.IGNORECASE,
)
_ADVISES = re.compile(
    r"^(?:(?:so|then|ok|okay|if you like|instead|therefore|here|for (?:this|that|your case)|given that),?\s+)*"
    r"i(?:'d| would)? (?:suggest|recommend|propose|advise)(?: that)?(?: we| you| to)?\s+(?P<what>\w+.{6,})$",
    re.IGNORECASE,
)
_POINTS = re.compile(r"\w+(?: (?:with|to|for|it as))* (?:that|it|this|these|those|them|so)\b", re.IGNORECASE)
_TASK_ONLY = re.compile(
    r"\b(?:take|have) a (?:look|closer)|\blook(?:ing)? (?:at|into)|\bcontinue\b|\bproceed\b|\bimplement (?:it|this|"
    r"that|now)|\bgo ahead\b|\bnow\?$",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"^\W*(?:(?:option|variant|version|choice|number|plan|no\.?)\s*)?\(?(?P<mark>[A-Ha-h]|[1-9])\b[).:*\s–—-]+(?P<what>\S.{5,})$",
    re.IGNORECASE,
)
# An option that is a task, not a choice between things.
_DOES = re.compile(
    r"(?:run|apply|continue|proceed|implement|fix|create|review|commit|start|skip|stop|done|go|open|show|edit|write|check|"
    r"test|push|merge|exit|cancel|approve|reject|yes|no|other|both|all|none|wait|do|leave|update|add|deploy|just|retry)\b",
    re.IGNORECASE,
)
_CHOOSES = re.compile(
    rf"^{LEAD}(?:(?:let'?s|we'?ll|i'?ll|please) )?(?:(?:go|do|take|pick|choose|use|going|i'd say)\s+(?:with\s+|"
    rf"for\s+)?)?(?:the )?"
    r"(?:option|variant|version|choice|number|plan|no\.?)?\s*\(?(?P<mark>[A-H]|[1-9])\)?(?: (?:please|it is|then|"
    r"sounds good|is (?:fine|better|good)))?[.!]*$",
    re.IGNORECASE,
)


def is_decision(bare: str) -> bool:
    """Return whether a sentence that a user typed, without its quotations, decides something."""
    return any(pattern.search(bare) for pattern in _DECISIONS) and not _NOT_YET.search(bare)


def chosen_option(said: str, answer: str) -> tuple[str, str] | None:
    """Return the option of `answer` that `said` chooses by its mark, and its line; None if none."""
    chosen = _CHOOSES.match(said)
    lines = [line for line in answer.split("\n") if not line.lstrip().startswith("|")] if chosen else []
    options = [found for line in lines if (found := _OPTION.match(line))]
    named = [one for one in options if chosen and one["mark"].casefold() == chosen["mark"].casefold()]
    if len(named) != 1 or len(options) < FEWEST_OPTIONS:
        return None
    what = re.sub(r"\*\*|__", "", named[0]["what"])
    return None if _DOES.match(what) else (what, named[0][0])


def agreed_proposal(said: str, sentences: Sequence[str]) -> tuple[str, str] | None:
    """Return the proposal in the last of an answer's `sentences`, and its sentence, if `said` agrees; else None."""
    if not _AGREES.match(said):
        return None
    for sentence in reversed(sentences[-LAST_SENTENCES:]):
        proposed = _PROPOSES.match(sentence) or _ADVISES.match(sentence)
        if proposed and not _TASK_ONLY.search(sentence) and not _POINTS.match(proposed["what"]):
            return proposed["what"].rstrip("?! "), sentence
    return None
