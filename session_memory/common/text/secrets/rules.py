"""The rules for secrets, read from rules.tsv, and the tables for searching a text.

Every prompt with news waits for this, so a row is read completely only if its keyword is found. An
install computes PREBUILT (see awareness/events/bundle.py), which shortens the prompt by .05 of a
bare start.
"""

from __future__ import annotations

# Words for a password that are searched for in exactly this form, by a letter that only they have.
FOREIGN_WORDS = {
    "ñ": ("contraseña", "Contraseña"),
    "ь": ("пароль", "Пароль"),
    "码": ("密码",),
    "碼": ("密碼",),
    "ド": ("パスワード",),
    "ł": ("hasło", "Hasło"),
    "ö": ("lösenord", "Lösenord"),
    "호": ("비밀번호",),
}
# Words searched for in ASCII, in any case. <foreign> and <passwords> are placeholders for the two
# lists above.
FOREIGN = "mot de passe|senha|kennwort|wachtwoord"
PASSWORDS = "password|passwort|passphrase|passcode|" + FOREIGN
# Each keyword for a place contains one of these roots, and a text is searched for all roots at
# once. The search also stops where the characters of different roots of a set are mixed. These
# sets are chosen so real text has few such places.
ROOTS = (
    (b"pw",),
    (b"://", b"log", b"e-l"),
    (b"key", b"kty", b"bea", b"ken", b"den", b"beg"),
    (b" --", b" -s", b" -p", b" -a", b" -b", b" -u", b" -k", b" -w"),
    (b"pas", b"uga"),
    (b"sec", b"see"),
    (b"eds", b"woo", b"coo"),
    (b"iza", b"nha", b"ne("),
)
_ROOTS = frozenset([root for roots in ROOTS for root in roots])
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
ALPHANUMERIC = "0123456789" + LETTERS
_HEX = "0123456789abcdefABCDEF"
# The characters of the classes in rules.tsv, as in scan.py, and how many begin a UUID.
CLASSES = {
    "<hex>": _HEX,
    "<b36>": ALPHANUMERIC[:36],
    "<B36>": ALPHANUMERIC[:10] + ALPHANUMERIC[36:],
    "<b62>": ALPHANUMERIC,
    "<b64>": ALPHANUMERIC + "+/",
    "<b64u>": ALPHANUMERIC + "_+/-",
    "<url>": ALPHANUMERIC + "_-",
    "<uuid>": _HEX,
}
_UUID_BEGINNING = 8
_NOT_IN_WORD = r"(?<!\w)"
AFTER_WORDS = "0123456789_.-"  # may end a name behind its last word
BETWEEN = " \t\"'`*?]\\+"  # may stand between a name and its sign
NAME_WITHIN = 64
LONG_VALUE = 200
NAMES = b"pass secret token key pw kennwort seed".split()  # in the names of assignments.py
NO_RULE, GATE = -1, -2  # the numbers of names, and of gates
WORD_CHARACTERS = ALPHANUMERIC.encode()
AS_WORDS = bytes([code if code in WORD_CHARACTERS else 32 for code in range(256)])
SIGNS_AS_TABS = bytes([code if code in WORD_CHARACTERS + b" " else 9 for code in range(256)])


TYPE_CHECKING = False
if TYPE_CHECKING:
    Row = tuple[bytes, int, list[int]]  # a keyword, the offset of its root, the numbers of rules


class SecretRule:
    """One row of rules.tsv; `number` is its place among them."""

    def __init__(self, number: int) -> None:
        form, kind, keywords, pattern, *options = ROWS[number].decode().split("\t")
        named = dict([option.split("=", 1) for option in options])
        self.number = number
        self.form = form
        self.kind = kind
        self.keywords = keywords.split(None if form in ("token", "inside", "named") else "|")
        self.pattern = pattern
        self.gate = named.get("gate", "")
        self.before = int(named.get("before", 0))
        self.judge = named.get("judge", "")
        self.near = named.get("near", "").encode()
        self.soon = named["soon"].encode().split(b"|") if "soon" in named else []
        self.within_url = named.get("url", "").encode()
        self.begins_word = pattern.startswith(_NOT_IN_WORD)
        next_characters = named.get("next", "").replace("<tab>", "\t")
        follows = (next_characters, 1) if next_characters else _beginning(pattern, form, keywords)
        self._following, self._least_following = follows[0].encode(), follows[1]

    def may_follow(self, text: bytes, at: int) -> bool:
        """Check the characters after a keyword that ends at `at`, without the regex."""
        following = text[at : at + self._least_following]
        return len(following) == self._least_following and not following.translate(
            None, self._following
        )


def _beginning(pattern: str, form: str, keywords: str) -> tuple[str, int]:
    """Return the characters, and how many of them at least, with which a regex begins after its
    keyword; '' and 0 if it says something else there."""
    if form != "token":
        if not pattern.startswith(keywords):
            return "", 0
        pattern = pattern[len(keywords) :].removeprefix("(?P<secret>")
    name, end, further = pattern.partition(">")
    characters = CLASSES.get(name + end, "")
    if not characters or "|" in pattern:
        return "", 0
    if name == "<uuid":
        return characters, _UUID_BEGINNING
    count = further[1:].partition("}")[0].partition(",")[0] if further[:1] == "{" else "0"
    return characters, int(count)


class Tables:
    """The keywords of `rows` in their form for the search, each with the number of its rule."""

    def __init__(self, rows: list[bytes]) -> None:
        self.rows = rows
        # Tokens by their first word, or by the first three characters of a word that continues
        # after them; without a word
        self.words: dict[bytes, list[tuple[int, bytes]]] = {}
        self.heads: dict[bytes, list[tuple[int, bytes]]] = {}
        self.inside: list[tuple[int, bytes]] = []
        self.digits: list[tuple[int, bytes]] = []
        # Of places, by their root, with its offset in them and all their rules
        self.roots: dict[bytes, list[Row]] = {}
        self.gates: dict[bytes, list[tuple[int, bytes]]] = {}
        self.foreign: list[int] = []
        names = []
        tokens = []
        numbers: list[int] = []
        for number, row in enumerate(rows):
            form, _, keywords, options = row.split(b"\t", 3)
            if form == b"named":
                names.append(keywords)
            elif form == b"token" or form == b"inside":
                tokens.append(keywords)
                numbers += [number] * (keywords.count(b" ") + 1)
            elif form != b"assigned":
                self._add_places(number, form, keywords, options)
        self.names = frozenset(b" ".join(names).replace(b"*", b"").split())
        self._add_tokens(numbers, b" ".join(tokens))
        for name in NAMES:
            self._add_root(NO_RULE, name)
        for name in self.gates:
            self._add_root(GATE, name)
        self.columns = _columns()

    @classmethod
    def restored(cls, parts: dict[str, object]) -> Tables:
        """Return tables by their `vars`."""
        tables = cls.__new__(cls)
        tables.__dict__ = parts
        return tables

    def _add_tokens(self, numbers: list[int], keywords: bytes) -> None:
        parted = keywords.translate(SIGNS_AS_TABS).split(b" ")
        for number, keyword, parts in zip(numbers, keywords.split(b" "), parted):
            word, sign, _ = parts.lstrip(b"\t").partition(b"\t")
            if not word or keyword[0] == 42:
                self.inside.append((number, keyword.lstrip(b"*")))
            elif not sign:
                self.heads.setdefault(word[:3], []).append((number, keyword))
            elif word in self.words:
                self.words[word].append((number, keyword))
            else:
                self.words[word] = [(number, keyword)]

    def _add_places(self, number: int, form: bytes, keywords: bytes, options: bytes) -> None:
        if b"<" in keywords:
            self.foreign.append(number)
            keywords = (PASSWORDS if keywords == b"<passwords>" else FOREIGN).encode()
        _, _, gate = options.partition(b"\tgate=")
        for keyword in keywords.split(b"|"):
            if form == b"digits":
                self.digits.append((number, keyword))
            elif form == b"command":
                self._add_root(number, b" " + keyword)
            elif gate:
                self.gates.setdefault(gate, []).append((number, keyword))
            else:
                self._add_root(number, keyword)

    def _add_root(self, number: int, keyword: bytes) -> None:
        offset = 0
        while (root := keyword[offset : offset + 3]) not in _ROOTS and (
            root := root[:2]
        ) not in _ROOTS:
            offset += 1
        rows = self.roots.setdefault(root, [])
        for known, _, numbers in rows:
            if known == keyword:
                numbers.append(number)
                return
        rows.append((keyword, offset, [number]))


def _columns() -> tuple[bytes, ...]:
    """Return the bits of the characters at each of three positions.

    Each set of roots has a bit. After a root of two characters, any character may follow."""
    bits_by_place = (bytearray(256), bytearray(256), bytearray(256))
    for number, roots in enumerate(ROOTS):
        bit = 1 << number
        for root in roots:
            for column, code in zip(bits_by_place, root):
                column[code] |= bit
            if len(root) == 2:
                bits_by_place[2][:] = bytes([bits | bit for bits in bits_by_place[2]])
    return tuple(map(bytes, bits_by_place))


def _rows() -> list[bytes]:
    with open(__file__.rpartition("rules.")[0] + "rules.tsv", "rb", 0) as file:
        return [row for row in file.read().partition(b"regex\toptions\n")[2].split(b"\n") if row]


PREBUILT = vars(Tables(_rows()))
TABLES = Tables.restored(PREBUILT)
ROWS = TABLES.rows
_rules: dict[int, SecretRule] = {}


def rule(number: int) -> SecretRule:
    """Return the rule with a number, from its row of rules.tsv, which is read at the first call."""
    if number not in _rules:
        _rules[number] = SecretRule(number)
    return _rules[number]
