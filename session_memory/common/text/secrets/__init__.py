"""Secrets in text: finding and redacting them. rules.tsv has the rules.

assignments: secrets that are assigned to names
redaction: `find_secrets` and `redact`, with the first look that most texts end at
rules: the rules of rules.tsv
scan: regexes and judgement, for the texts with a sign of a secret
"""
