"""Makes a title for a session without one: from its first request, from its plan, or from its beginning."""

from __future__ import annotations

from ..text.timestamps import local_time

SHORT_CHARACTERS = 40  # a longer text is always a request
LEAD_CHARACTERS = 40  # within which a phrase leads into a request, or thanks at its end
LINE_CHARACTERS = 2000  # of a line, so much is looked at
_PLAN = "implement the following plan"
_PLAN_HEADINGS = ("", "plan", "implementation plan", "context", "overview", "summary", "goal")
_PLAN_LABELS = ("implementation plan:", "plan:")
# Words that agree, thanks or say to continue, and name nothing. So are single characters and numbers: they answer a
# question.
_AGREED = """
    ahead all alright and as commit continue cool correct do done exactly fine go good great it just keep lgtm
    looks nice no nope now ok okay on perfect please proceed push resume right same sounds sure thank thanks
    that the then this very well works yeah yep yes you [document] [image] ja weiter danke oui non 继续 好的
"""
_NO_REQUEST = frozenset(_AGREED.split())
# Words that introduce a request without naming its subject; of phrases with the same beginning the longer first.
_LEADS = (
    "i would like you to", "i'd like you to", "your task is to", "your job is to", "would you please", "would you mind",
    "could you please", "can you please", "will you please", "can you help me", "please help me", "i want you to",
    "i need you to", "i would like to", "i'd like to", "i think we need to", "i think we should", "i think that",
    "i think", "i feel like", "we now need to", "we need to", "we should", "i want to", "i need to", "go ahead and",
    "bitte kannst du", "kannst du bitte", "kannst du", "könntest du", "can you", "could you", "would you", "will you",
    "can we", "could we", "let us", "let's", "lets", "help me", "by the way", "btw", "good morning", "thank you",
    "thanks", "hi there", "hello", "hey", "hi", "hallo", "okay", "ok", "alright", "please", "pls", "plz", "bitte",
    "s'il te plaît", "por favor", "请",
)  # fmt: skip
_ASKING = ("you", "we", "please", "kannst du", "könntest du", "bitte")  # ends of leads that make a question of an order
_EMPHASIZED = "ultrathink megathink omfg omg wtf ugh fucking fuckin damn goddamn bloody freaking asap pls plz please"
_EMPHASIS = frozenset(_EMPHASIZED.split())
_CAPITALS = """
    ALL ALWAYS AND ANY BUT DO FIRST FULL IMPORTANT IN IS IT JUST MUST NEVER NO NOT NOW ON ONLY REAL REALLY STOP THE THIS
    THINK VERY WHOLE WHY YOU
"""
_SHOUTED = frozenset(_CAPITALS.split())
# Words that are left of a request which names nothing but files.
_NAMES_NOTHING = """
    a an at be check carefully deep deeply file files first follow for full hard harder implement in into is look me my
    of our read really see start task think through to try ultra use what with your
"""
_EMPTY = _NO_REQUEST | frozenset(_NAMES_NOTHING.split())


def is_request(text: str) -> bool:
    """Check if a prompt is a request, unlike "3", "yes, continue" or "commit"."""
    if len(text) > SHORT_CHARACTERS:
        return True
    words = [word.strip(".,;:!?()'\"*`") for word in text.casefold().split()]
    return any([len(word) > 1 and word not in _NO_REQUEST and not word.isdigit() for word in words])


def is_plan(prompt: str) -> bool:
    """Check if a prompt is a plan to implement, as a runtime passes it on."""
    return prompt[: len(_PLAN)].casefold() == _PLAN


def subject(prompt: str) -> str:
    """Return the subject of a prompt: the heading of a plan; the files if it names nothing else; else the prompt
    without the politeness and the capitals in its first line."""
    if is_plan(prompt):
        return _heading_of_plan(prompt) or prompt
    first, _, rest = prompt.strip().partition("\n")
    if len(first) > LINE_CHARACTERS:
        return prompt
    words = _without_emphasis(_quiet(first).split())
    files = [word for word in words if _is_mention(word)]
    telling = [word for word in words if word not in files and word.strip(".,;:!?()'\"*`").casefold() not in _EMPTY]
    if files and not telling:
        return "\n".join([", ".join([_file_name(word).rstrip(".,;:!?") for word in files]), rest]).strip()
    named = " ".join([_file_name(word) if word in files else word for word in words])
    told = _without_lead(named)
    if len(told.split()) < 2 and len(told) <= len(named) // 2 and (told or not rest.strip()):
        told = named
    return f"{told}\n{rest}".strip() or prompt


def title_by_time(began: float | None) -> str:
    """Return the title of a session of which only the time it `began` is known or may be shown."""
    return "unnamed session" if began is None else f"session of {local_time(began)}"


def _heading_of_plan(prompt: str) -> str:
    for line in prompt[len(_PLAN) :].split("\n"):
        heading = line.strip("#*_: \t\r")
        label = next((one for one in _PLAN_LABELS if heading.casefold().startswith(one)), "")
        heading = heading[len(label) :].strip()
        if heading.casefold() not in _PLAN_HEADINGS:
            return heading
    return ""


def _quiet(line: str) -> str:
    """Return a line without shouting: words in capitals that are no names, and exclamation marks in a row."""
    words = line.split()
    spoken = [word for word in words if len(word) > 1 and word.isalpha()]
    if len(spoken) > 2 and 5 * sum([word.isupper() for word in spoken]) > 3 * len(spoken):
        line = line.lower()
    else:
        line = " ".join([word.lower() if word.strip(".,;:!?") in _SHOUTED else word for word in words])
    while "!!" in line or "??" in line or "?!" in line or "!?" in line:
        line = line.replace("!!", "!").replace("??", "?").replace("?!", "?").replace("!?", "?")
    return line


def _without_emphasis(words: list[str]) -> list[str]:
    """Return the words without those that only stress; the end of a sentence moves to the word before."""
    kept: list[str] = []
    for word in words:
        bare = word.strip(".,;:!?")
        if bare.casefold() not in _EMPHASIS or bare.istitle():
            kept.append(word)
        elif kept and word[-1] in ".;:!?" and kept[-1][-1] not in ".;:!?":
            kept[-1] = kept[-1].rstrip(",") + word[-1]
    return kept


def _without_lead(text: str) -> str:
    """Return `text` without its introduction and without thanks at its end; '' if nothing else is in it."""
    was_asked = False
    folded = text[:LEAD_CHARACTERS].casefold()
    lead = _lead_of(folded)
    while lead:
        was_asked = was_asked or lead.endswith(_ASKING)
        text = text[len(lead) :].lstrip(" ,.;:!-")
        folded = text[:LEAD_CHARACTERS].casefold()
        lead = _lead_of(folded)
    folded = text[-LEAD_CHARACTERS:].casefold()
    for end in ("thank you", "thanks", "danke", "please"):
        if folded.rstrip(" .!?").endswith(f" {end}"):
            text = text.rstrip(" .!?")[: -len(end)].rstrip(" ,;-")
            break
    if was_asked and text.endswith("?") and text.count("?") == 1:
        text = text[:-1]
    return text.rstrip(" ,;-")


def _lead_of(folded: str) -> str:
    """Return the phrase that leads into a text in lower case; '' for none."""
    if not folded.startswith(_LEADS):
        return ""
    for lead in _LEADS:
        if folded.startswith(lead) and (len(folded) == len(lead) or folded[len(lead)] in " ,.;:!-" or lead == "请"):
            return lead
    return ""


def _is_mention(word: str) -> bool:
    """Check if a word is the `@path` of a file."""
    return len(word) > 2 and word[0] == "@" and ("/" in word or "." in word[1:-1])


def _file_name(word: str) -> str:
    """Return the name of a mentioned file, without its directory."""
    path = word[1:].rstrip(".,;:!?)/")
    return path.rpartition("/")[2] + word[1 + len(path) :].strip("/")
