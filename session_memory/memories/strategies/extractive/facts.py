"""Facts: a user's statements that stay true beyond the task. Pure."""

from __future__ import annotations

import re

from .cues import LEAD, any_of

_INTRODUCED = re.compile(
    rf"^{LEAD}(?:fyi|for your information|for (?:future )?reference|for the record|for context|note|please note|"
    rf"(?:please |also |and )*remember|"
    r"keep in mind|bear in mind|just so you know|so you know|heads[- ]up|you should know|be aware|"
    r"don'?t forget)\b[,:\s–—-]*(?:that\s+)?"
    r"(?!to\b|the @|@|me\b|when\b|how\b|what\b|your?\b|self\b|always\b|never\b)(?P<what>.+)$",
    re.IGNORECASE,
)
_LASTING = (
    r"(?:is|are|was born|lives?|runs?|listens?|uses?|expires?|starts?|begins?|ends?|lasts?|stores?|contains?|"
    r"holds?|belongs?|points?|"
    r"supports?|requires?|needs?|costs?|weighs?|opens?|closes?|changes|happens?|takes|comes|goes|sits|resides?|"
    r"covers|means|stands for|speaks?|"
    r"studies|works|has|have|owns|teaches|expects?|accepts?|allows|counts|reports?|rotates?|ships?|renews?|cannot|"
    r"can't|can only|can|"
    r"doesn't|does not|don't|do not|won't|isn't|aren't|must be|serves|writes|reads|keeps?|charges|deploys?|meets?|"
    r"backs? up|resets?|eats?)"
)
_OURS = r"(?:our|my|all|every|each|both|the \w+'s|\w+'s)"
_THINGS = any_of("""
    servers? databases? db hosts? apis? endpoint ports? clusters? buckets? accounts? customers? clients? invoices?
    contracts? deadlines? budgets? teams? company offices? domains? repos? repositor(?:y|ies) pipelines? versions?
    licen[cs]es? tables? columns? warehouses? datasets? timestamps? prices? revenue numbers? currency meetings?
    rotation releases? deployments? manuscripts? publishers? books? exams? schools? flights? hotels? trains? cars?
    dogs? cats? birthdays? wedding landlord doctor boss managers? professors? thesis courses? shops? stores? printers?
    routers? backups? jobs? queues? topics? services? staging production prod environments? registry mirrors? vpn
    subnets? zones? certificates? retention quotas? limits? sla timezones? garden house apartment flat kitchen bikes?
    concert lessons? appointments? sensors? devices? firmware cameras? gateways? proxy firewall tokens? sessions?
    passwords? users? employees? students? rent insurance tax vat fiscal year quarter newsletter magazine chapters?
    readers? authors? audience editor novel dashboards? metrics? surveys? samples? units? ids? fields? exports? feeds?
    partitions? shards? replicas? branches monorepo packages? modules? locale languages? hostname machines? nodes?
    runners? agents?
""")
_STATED = re.compile(
    rf"^{LEAD}(?P<what>(?:{_OURS}\s+(?:[\w.'/`-]+\s+){{1,6}}?|(?:the\s+|"
    rf"this\s+)?(?:[\w.'/`-]+\s+){{0,4}}?(?:{_THINGS})\s+(?:[\w.'/`-]+\s+){{0,4}}?|"
    rf"[\w-]*[a-z][\w-]*[._/][\w./-]+\s+){_LASTING}\s+.+)$",
    re.IGNORECASE,
)
_OWN = re.compile(
    rf"^{LEAD}(?P<what>(?:my name is\b|i work (?:at|for|as|with|in|from|on)\b|i live (?:in|at|near|with)\b|i(?:'m|"
    rf" am) (?:an? (?!bit|little|fan|big|huge|idiot)|"
    r"allergic|vegetarian|vegan|lactose|diabetic|based in|located in|colou?r-?blind|left-handed|married|"
    r"from [A-Z])|i was born|i have (?:\d+|two|three|four|an? (?:son|"
    r"daughter|dog|cat|sister|brother|wife|husband|allergy|degree))\b|we (?:deploy|release|ship|host|bill|invoice|"
    r"publish|meet|run|use|store|keep|support|sell|"
    r"pay|speak|back up|pin|build)\b(?!\s+(?:it|this|that|these|those|them|into|out)\b)|we(?:'re| are) (?:using|on|"
    r"based in|running|a (?:team|company|family|group))\b|"
    r"we have (?:\d+|two|three|four|five|a dozen)\b).+)$",
    re.IGNORECASE,
)
# Signs of a specific statement: a number, a name, a path, code or a lasting property.
_PARTICULAR = re.compile(
    r"\d|`[^`]+`|[\w-]+[._/][\w./-]+|(?<=[a-z,;] )[A-Z][\w-]+|\b(?:called|named|due|hosted|owned by|allergic|"
    r"vegetarian|vegan|married|based (?:on|in)|"
    r"stored in|written in|deployed (?:to|on|from)|managed by|read-only|case[- ]sensitive|net of|gross|in euros?|"
    r"encrypted|append-only|immutable|"
    r"nuts?|gluten|in (?:\w*(?:volts|met(?:er|re)s|grams|seconds|bytes|degrees|feet|inches|minutes|hours|days|"
    r"euros|dollars|pounds|cents|celsius|kelvin|percent))|every (?:\w+day|week|month|year|night|morning|quarter)|"
    r"on (?:\w+days?)|one|two|three|four|five|"
    r"six|seven|ten|twelve|daily|weekly|monthly|yearly)\b"
)
_PASSING = re.compile(
    r"\b(?:now|currently|still|again|today|yesterday|tonight|tomorrow|at the moment|just|already|any ?more|"
    r"no longer|yet|broken|failing|fails?|failed|wrong|weird|"
    r"strange|odd|missing|stuck|down|slow|hanging|hangs?|bugs?|errors?|issues?|problems?|crash\w*|works(?! (?:at|"
    r"for|in|with|as|from))|working|ready|done|fixed|"
    r"red|green|good|great|fine|nice|perfect|ugly|horrible|terrible|bad|better|worse|best|worst|confusing|stupid|"
    r"shit\w*|fuck\w*|too|very|so (?!no\b|we\b|i\b|that\b|it\b|don't\b|please\b)|really|pretty|"
    r"here|above|below|attached|following|this (?:line|file|function|test|commit|branch|change|pr|page)|looks?|"
    r"sounds?|feels?|should|need(?:s)? to|want|"
    r"supposed|must(?! be)|almost|nearly|about to|this (?:morning|week|time)|last (?:night|week)|late|empty|"
    r"full of|in progress|waiting|pending|blocked|the same|"
    r"off|gone|happening|annoying|beautiful|amazing|awful|crazy|insane|boring|great|kind of|sort of|a bit|a little|"
    r"super|quite|unclear|stale|red|flaky)\b",
    re.IGNORECASE,
)

_WANTS = re.compile(r"\bi(?:'d| would| want| prefer| like| hate| love| need)\b|\blet'?s\b", re.IGNORECASE)


def stated_fact(sentence: str, bare: str) -> str:
    """Return the fact in a sentence that a user typed; '' for none. `bare` is the sentence without its quotations."""
    if _PASSING.search(bare) or _WANTS.search(bare):
        return ""
    introduced = _INTRODUCED.match(sentence)
    if introduced and re.search(rf"\b{_LASTING}\b", introduced["what"], re.IGNORECASE):
        return introduced["what"]
    stated = _OWN.match(sentence) or _STATED.match(sentence)
    return stated["what"] if stated and _PARTICULAR.search(stated["what"]) else ""
