"""Words that begin or form a statement, and words that disqualify one. Pure.

English is matched broadly, other languages only where a match is unambiguous: a missed sentence can still be found by
search, a wrong one stays in the memories.
"""

from __future__ import annotations

import re


def any_of(words: str) -> str:
    """Return a pattern for any of `words`: patterns separated by spaces."""
    return "|".join(words.split())


VERBS = any_of("""
    add address align answer apply archive ask assume assert attach avoid back batch be begin bind build bump cache
    call capitalize check choose cite clean close comment commit compare compress confirm copy cover create credit cut
    declare default delete deploy describe discuss document double-check drop edit email end escape evaluate exclude
    explain export expose fail feed file filter finish fix fold follow force format freeze generate give group handle
    hard-code hardcode have highlight hide import include indent index inline install invent keep label lead leave let
    limit link list load lock log look mail make mark measure mention merge migrate mix mock mount move name nest
    number offer omit open order overwrite pad page paste pick pin place plot post prefer prefix preserve print
    propose pull push put quote raise read rebase record reduce refer reformat refuse release remind remove rename
    repeat replace reply report request respond restart restore retry return reuse review rewrite round run save say
    schedule seed select send separate serve set share ship show sign skip sort specify spell split squash stage start
    state stay stick stop store strip suggest summarize summarise support swap tag take talk tell test touch track
    translate trim trust truncate try turn type underline update upgrade upload use validate verify version wait warn
    watch wear wrap write work cook buy book round-trip hyphenate italicize bold
""")
_FILLER = (
    r"ok(?:ay)?|no|yes|yeah|yep|nope|well|so|and|but|also|btw|by the way|hey|hi|hello|hm+|ah+|oh|alright|right|"
    r"sure|good|"
    r"perfect|thanks|thank you|please|pls|plz|actually|just|then|finally|dude|my dude|sorry|wait|omf?g|ugh|jesus|"
    r"reminder|rule|important|really|one (?:more )?thing|in general|generally|as a rule|on second thought|for now|"
    r"decision|final decision|preference|note(?: that)?|fyi|remember(?: that)?|keep in mind(?: that)?|"
    r"(?:a )?(?:couple|few) (?:of )?things|in that case|understood|fine|cool|nice|great|makes sense|"
    r"agreed|i see|got it|true|hence|therefore|secondly|firstly|lastly|third|second|again|by all means|and yes"
)
LEAD = rf"(?:(?:{_FILLER})\b[\s,.:;!-]*)*"
SETTING = (
    r"(?:in (?:this|the|our|my) (?:repo(?:sitory)?|project|codebase|code base|document|team)\s+|(?:in|for|on|at|"
    r"when|whenever|before|after|while|with|if|unless|every time|each time|to)\s[^,]{2,70},\s+)?"
)
START = rf"^{LEAD}{SETTING}{LEAD}"

QUESTION = re.compile(
    r"[?？]\s*[\"')\]]*$|^(?:can|could|would|will|should|shall|do|does|did|is|are|was|were|why|how|what|when|where|"
    r"who|which|"
    r"have you|has|isn't|aren't|don't you|doesn't|won't)\b(?!.*,\s*(?:please\s)?(?:always|never)\b)",
    re.IGNORECASE,
)
# Imagined, supposed or hoped.
HYPOTHETICAL = re.compile(
    r"\b(?:what if|suppose|imagine|would(?! (?:rather|prefer|much rather|really prefer|only want))|could|might|"
    r"maybe|perhaps|possibly|"
    r"in theory|theoretically|hypothetically|wonder(?:ing)?|not sure|unsure|i think|i guess|i believe|i suppose|i bet|"
    r"i feel|i assume|probably|presumably|apparently|supposedly|allegedly|seems?|assuming|hopefully|wish|if only|"
    r"if (?:we|i|you|he|she|they|it) (?:had|were|did|always|never|ever|ha[ds]n't|weren't)|as if|pretend|let's say|"
    r"say we|"
    r"iirc|iiuc|afaik|i might|one day|some ?day|eventually|ideally|thinking (?:of|about)|considering|toying with|"
    r"debating|torn between|in an ideal world)\b",
    re.IGNORECASE,
)
SARCASM = re.compile(
    r"\b(?:oh,? (?:great|nice|sure|wonderful|lovely|perfect|brilliant|good|joy)|great job|nice job|good job|thanks for|"
    r"thank you for|as always|as usual|as ever|can you believe|yeah,? right|sure,? because|of course (?:it|you|"
    r"they|we)|"
    r"brilliant|wonderful|how (?:nice|lovely|convenient)|love (?:it when|how)|nice one|lol|lmao|rofl|haha+|clearly,?|"
    r"obviously,?|because (?:who|why|that)|what could (?:possibly )?go wrong|sigh|slow clap|bravo|genius|magnificent|"
    r"my favou?rite|truly|just what (?:i|we)|just kidding|kidding|joke|joking|jk)\b|[:;]-?[)P]|🙄|😂|😅|🤡|"
    r"(?:^|\s)/s\b",
    re.IGNORECASE,
)
# Another person's words, and the content of a text that is to be written.
REPORTED = re.compile(
    r"\b(?:says?|said|told (?:me|us|him|her|them)|claims?|claimed|insists?|insisted|states?|stated|complain(?:s|ed)|"
    r"recommends|recommended|suggests|suggested|according to|in the words of|quote|unquote|quoting|saying|titled|"
    r"entitled|"
    r"called out|keeps? telling|wants? (?:me|us) to|wanted (?:me|us) to|asks? (?:me|us) to|asked (?:me|us) to|"
    r"the (?:docs?|documentation|readme|manual|article|book|spec|guide|tutorial|linter|warning|error|message|"
    r"comment|post|"
    r"rule of thumb)|(?:he|she|they|people|everyone|everybody|others|some|my (?:boss|mother|mom|mum|dad|father|teacher|"
    r"colleague|manager|client|professor|doctor|friend)) (?:thinks?|wants?|prefers?|likes?|hates?|loves?|decided|"
    r"always|"
    r"never|uses?))\b|\b(?:that|which) (?:reads|tells|explains|lists|describes|teaches|warns|reminds)\b|"
    r"\b(?:write|draft|compose|generate|create|add|make|print|log|show|display|put|include|output|return|implement|"
    r"build)\b"
    r"[^.]*\b(?:section|guide|rule|policy|test|check|page|paragraph|function|docstring|lint|prompt|slogan|poem|"
    r"story|scene|"
    r"dialogue|character|line|button|label|script|method|class|flag|hook)\b[^.]*\b(?:always|never|decid|prefer|"
    r"instead of)",
    re.IGNORECASE,
)
PAST = re.compile(r"\b(?:used to|back then|years ago|in the old days|when i was|once upon|long ago)\b", re.IGNORECASE)
QUOTED = re.compile(r"[\"“„«][^\"”“»]*[\"”“»]|(?<!\w)'[^']{3,}'(?!\w)|(?<!\w)‘[^’]{3,}’")

VAGUE = (
    r"(?:it|this|that|these|those|them|so|shit|stuff|things?|something|anything|again|here|there|more|less|"
    r"everything)"
)
VAGUE_END = (
    rf"(?:\s+(?:{VAGUE}|the (?:other|same|first|second|last|next|new|old) (?:one|thing|way)|one|ever|please|now|"
    rf"any ?more))*\s*[.!]*$"
)
