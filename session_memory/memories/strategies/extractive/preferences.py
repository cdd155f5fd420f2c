"""Preferences: a user's words about how to do things in general. Pure."""

from __future__ import annotations

import re

from .cues import LEAD, SETTING, START, VAGUE, VAGUE_END, VERBS, any_of

_NOT_GENERAL = r"(?!\s+(?:mind|again)\b)"
_PREFERENCES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # always run the linter; and never push to main
        rf"(?:{START}(?:you (?:must|should|have to|need to|are to) )?|[,;:(–—-]\s*(?:and |but |so |please )*|"
        rf"\b(?:and|but|so)\s+(?:please )?)"
        rf"(?:please )?(?:always|never(?:,? ever)?|(?:don'?t|"
        rf"do not) ever)\s+(?:please )?(?:{VERBS}){_NOT_GENERAL}\b(?!{VAGUE_END})",
        # from now on write tests first
        rf"^{LEAD}(?:from now on|going forward|from here on|as of (?:now|today)|henceforth|from today(?: on)?|"
        rf"in (?:the )?future),?\s+"
        rf"(?:please )?(?:{VERBS}|don'?t|do not|no|only|always|never|i want|i'd like|all|every|each|you|let'?s|"
        rf"we)\b(?!{VAGUE_END})",
        # keep it under 60 characters from now on
        rf"^{LEAD}{SETTING}(?:please )?(?:{VERBS}|don'?t|do not|only)\b.{{6,}}\b(?:from now on|going forward|"
        rf"in (?:the )?future|"
        r"at all times|without exception|every single time|every time|each time)[.!]*$",
        # don't page anyone without asking me
        rf"{START}(?:please )?(?:don'?t|do not|avoid|refrain from)\s+(?!forget|worry|hesitate|bother|"
        rf"mind)\w+.*\b(?:ever|unless|"
        r"without (?:asking|my|telling|being|me|checking|permission|confirm\w+|approval)|any ?more|anywhere|in general|"
        r"unnecessar\w+|under any circumstances|no matter)\b",
        # stop adding comments everywhere
        rf"^{LEAD}(?:please )?(?:let'?s )?stop (?!being|making|wasting|lying|messing|fucking|talking|kidding|"
        rf"joking|worrying|crying|"
        r"trying|doing|the|this|that|it|right)\w+ing\s+(?!the\b|this\b|that\b|it\b|my\b|your\b|shit|stuff|around|"
        r"up\b|now\b|"
        r"here\b|there\b|me\b|us\b|on\b|for\b|at\b|and\b|with\b|in\b|to\b|so\b|yet\b)\w+",
        # I prefer short commands
        rf"(?:{START}(?:for \w+,? )?|[,;]\s*(?:and |but |so )?)i(?:'d| would)?(?: really| strongly| generally|"
        rf" much| always| usually| only|"
        rf" personally| still)* prefer\s+"
        rf"(?!{VAGUE}\b|the (?:first|second|third|other|latter|former|last)|option|your|if|not to say)",
        # I'd rather use tabs
        rf"{START}i(?:'d| would)(?: really| much)* rather\s+(?:have|see|use|read|get|keep|work|write|"
        rf"implement)\s+(?!(?!it as){VAGUE}\b|your\b|the (?:other|first|second))",
        # I hate shell scripts
        rf"{START}i(?: really| absolutely| generally| just)* (?:hate|dislike|despise|detest|can'?t stand|(?:don'?t|"
        rf"do not) like|love|like)"
        rf"\s+(?!{VAGUE}\b|the\b|how\b|your?\b|where\b|to (?:see|know|hear|be|say|think|bother|ask|break|admit|"
        rf"interrupt)\b|what\b|"
        r"my\b|when\b|working with you|where|him\b|her\b|me\b|us\b|being\b|having\b|that's)[\w.@#-]+",
        # whenever you write tests, use functions
        rf"{START}(?:every time|each time|whenever) you\b[^,]+,\s*(?:please |always |also )*(?:{VERBS}|don'?t|"
        rf"do not|never)\b(?!{VAGUE_END})",
        # I never eat meat
        rf"{START}i (?:always|never|only|usually) (?:use|write|eat|drink|want|keep|run|prefer|format|name|deploy|"
        rf"review|travel|fly|"
        rf"buy|cook|order|read|work|shop|commit|squash|rebase)\b(?!{VAGUE_END})(?!\s+(?:to\b|a single|one)\b)",
        # we never commit to main
        rf"^{LEAD}{SETTING}we (?:always|never|only) (?:{VERBS})\b(?!{VAGUE_END})(?!\s+(?:get|got|see|have)\b)",
        # only use the standard library
        rf"^{LEAD}(?:only|exclusively) (?:use|write|answer|reply|respond|commit|push|buy|cook|suggest|include|show|"
        rf"quote|cite)\b(?!{VAGUE_END})",
        # no emojis please
        rf"^{LEAD}no (?:more )?(?!problem|worries|idea|way|thanks|need|doubt|rush|hurry|errors?|changes?|results?|"
        rf"luck|one|other|it\b|that\b|this\b)"
        r"(?:[\w.-]+ ){0,3}[\w-]+(?:s|ing|ng|ts),? (?:please|ever|anywhere|at all|whatsoever|in (?:the|my|"
        r"our) \w+)[.!]*$",
        # public functions must always be typed
        rf"^{LEAD}(?!it\b|this\b|that\b|they\b|which\b|there\b|he\b|she\b|we\b|i\b|you\b|"
        rf"if\b)(?:[\w`./-]+ ){{1,6}}(?:must|should|shall|may|has to|have to)"
        r" (?:always|never|not ever) (?!happen|occur|fail|work|have (?:been|happened)|be (?:possible|an? issue))\w+",
        # no deprecation alias!
        rf"^{LEAD}no [\w.-]+(?: [\w.-]+){{0,2}}!$(?<!way!)(?<!idea!)(?<!thanks!)(?<!problem!)(?<!luck!)"
        rf"(?<!worries!)(?<!no!)",
        # I only want tests of the parser
        rf"{START}i (?:would |really )?only want\s+(?!{VAGUE}\b|to (?:know|see|ask|say|check)\b|the\b)\w+",
        # use British spelling in everything you write
        rf"^{LEAD}(?:please )?(?:{VERBS})\b.*\b(?:in|for|with) (?:everything|all (?:of )?(?:my|our|your)\b|"
        rf"every (?:one of )?(?:my|our|your)\b).*$",
        # make sure to always lint
        rf"{START}(?:make sure|be sure) (?:to |that )?(?:you )?(?:always|never)\s+\w+(?!{VAGUE_END})",
        # I want you to always lint
        rf"{START}i want you to (?:always|never)\s+(?:{VERBS})\b(?!{VAGUE_END})",
    )
)
_SETTLED = (
    r"(?:ab (?:jetzt|sofort)|in zukunft|künftig|d[ée]sormais|dor[ée]navant|à partir de maintenant|"
    r"de ahora en adelante|"
    r"a partir de ahora|a partir de agora|de agora em diante|d'ora in poi|voortaan|vanaf nu|отныне|впредь|odtąd|"
    r"bundan sonra)"
)
_ORDERS = any_of("""
    verwende benutze nutze schreib schreibe antworte nimm mach mache frag frage prüfe führe teste halte lass
    formatiere verwenden\\sSie schreiben\\sSie utilise utilisez écris écrivez réponds répondez préfère préférez fais
    faites mets demande garde usa utiliza escribe responde prefiere pon haz pregunta usar escreva responda prefira
    faça utilizza scrivi rispondi preferisci metti chiedi gebruik schrijf antwoord vraag пиши пишите используй
    используйте отвечай отвечайте делай спрашивай запускай проверяй używaj pisz odpowiadaj
""")
_EVER = (
    r"(?:immer|nie|niemals|nie wieder|stets|toujours|jamais|siempre|nunca|jam[aá]s|sempre|mai|altijd|nooit|всегда|"
    r"никогда|zawsze|nigdy)"
)
_OF_OTHER_LANGUAGES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # ab jetzt ..., désormais ..., de ahora en adelante ...
        rf"^\W*{_SETTLED}\b.{{6,}}",
        # nie verwende ..., всегда пиши ...
        rf"^\W*(?:bitte|por favor|per favore|s'il te pla[iî]t|alsjeblieft|пожалуйста)?,?\s*(?:{_EVER}\s+)(?:ne\s+|"
        rf"не\s+)?(?:{_ORDERS})\b",
        # verwende immer ..., usa siempre ...
        rf"^\W*(?:bitte|por favor|per favore|s'il te pla[iî]t|alsjeblieft|пожалуйста)?,?\s*(?:ne\s+|n'|не\s+|no\s+|"
        rf"não\s+)?(?:{_ORDERS})\s+"
        rf"(?:\w+\s+){{0,2}}{_EVER}\b",
        # 以后 ..., 不要 ..., 必须 ...
        r"^(?:请|請)?(?:以后|以後|今后|今後).{0,8}(?:用|不要|都|请|請|必须|必須)|^(?:请|請)?(?:永远|永遠|始终|總是|总是)(?:不要|使用|用)|"
        r"^(?:请|請)?不要.{2,}|^(?:请|請)?(?:必须|必須|务必).{3,}",
        # 必ず ..., 항상 ...
        r"^(?:必ず|常に|絶対に|今後は).{3,}(?:ください|て|こと)[。!！]?$|^(?:항상|절대|앞으로는?)\s.{4,}(?:요|세요|마|라)[.!]?$",
    )
)


def is_preference(bare: str) -> bool:
    """Return whether an English sentence, without its quotations, states a general preference of its author."""
    return any(pattern.search(bare) for pattern in _PREFERENCES)


def is_foreign_preference(sentence: str) -> bool:
    """Return the same for a sentence in another language; matches only unambiguous wording."""
    return any(pattern.search(sentence) for pattern in _OF_OTHER_LANGUAGES)
