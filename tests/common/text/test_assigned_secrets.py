"""Values of names like DB_PASSWORD are redacted whole wherever they are assigned.

This includes commands and prose. Harmless values stay.
"""

from __future__ import annotations

import random

from harmless_texts import ONE_LINERS, TEST_RUNS
from secret_spellings import spellings
from text_scene import card_number, fill

from session_memory.common.text.secrets.redaction import find_secrets, redact

RANDOM = random.Random(7)
B62 = fill("b62", 24, RANDOM)
URL = fill("url", 38, RANDOM)
BASE32 = fill("b32", 32, RANDOM)
GROUPED, PLAIN_CARD, AMERICAN = (card_number(form, RANDOM) for form in (4, 16, 15))

ASSIGNED = [
    ("SMTP_PASS=«Sunset&96BUenN»", "a sign of a query"),
    *[
        (f"DB_PASSWORD=«Kf9x{sign}Zq83Lm»", f"the character {sign}")
        for sign in ";,(|<>&)$#!@%^*{}[]?~:/+='\""
    ],
    ('DB_PASSWORD="«my horse 9 word»"', "blanks"),
    ('DB_PASSWORD="«it\'s 9 here»"', "the other quotation mark"),
    ("DB_PASSWORD='«say \"hi\" 9»'", "the other quotation mark, too"),
    ("DB_PASSWORD=«sesame»", "a plain word"),
    ("PGPASSWORD=«sesame» psql", "before a command"),
    ("export API_KEY=«Kf9x;Zq8»", "shell"),
    ('$env:DB_PASSWORD = "«Kf9x;Zq»"', "PowerShell"),
    ("docker run -e DB_PASSWORD=«Kf9x;Zq» img", "an argument"),
    ('{"password": "«with space 7»"}', "JSON"),
    (r"{\"password\": \"«wi;th 7»\"}", "JSON within JSON"),
    (r'password: "«a\"b c9d»"', "an escaped quotation mark"),
    ("password: «sesame»", "YAML"),
    ("password: «Kf9x Zq83 Lm1»", "YAML with blanks"),
    ("password:\n  «hunter2x»", "YAML, on the next line"),
    ("password: >-\n    «Kf9xZq83»", "YAML, folded"),
    ("  db_password: |\n    «Kf9x;Zq83»", "YAML, as it stands"),
    ('[db]\npassword = "«Kf9x;Z q83»"', "TOML"),
    ("password = «Kf9x;Zq83»", "INI"),
    ("spring.datasource.password=«sesame»", "properties"),
    ("<password>«Kf9x;Zq83»</password>", "XML"),
    ("https://x.org/?password=«Kf9xZq8»&user=bob", "a query"),
    ("https://x.org/?api_key=«Kf9xZq83Lm»&user=bob", "a key in a query"),
    ('password: str = "«hunter2x»"', "behind a type"),
    ("**Password:** «Kf9x;Zq»", "Markdown"),
    ("STRIPE_KEY=«abc123def456»", "a key"),
    ("service.api.key=«Kf9xZq83Lm2»", "words parted by dots"),
    ("my-secret: «Kf9x|Zq83Lm»", "words parted by hyphens"),
    ('signingSecret: "«Kf9x;Zq83Lm»"', "words parted by case"),
    ("authToken: '«Kf9x Zq83;Lm22»'", "a token with blanks"),
    ("JWT_SECRET=«correct-horse-battery»", "several words"),
    ("MY_TOKEN=«123e4567-e89b-12d3-a456-426614174000»", "a UUID"),
    ("API_KEY_2=«Kf9xZq83Lm;a»", "a name with a number"),
    ("DB_PASSWORD=«$ecr3t!x»", "a dollar that is no variable"),
    ("mysql://root:«p@ss:w0rd/x»@db/prod", "a URL"),
    (
        "postgres://bob:«a#b?c9»@10.0.0.1:5432/x?sslmode=require",
        "a URL with the signs of another part",
    ),
    ("https://bob:«p@ss9»@git.example.org/o/r.git", "a URL of the web"),
]
KINDS = [
    (f"https://api.telegram.org/bot«123456789:AB{URL[:33]}»/getMe", "a Telegram token in a URL"),
    (f"it is «MT{B62[:22]}.{B62[:6]}.{URL}» for now", "a bare Discord token"),
    (f"use «1//0{URL}{URL}» there", "a bare Google refresh token"),
    (f'curl -b "session=«{B62}»" https://example.org', "curl -b"),
    ("docker login -u bob -p «Kf9x;Zq83» example.org", "docker login -p"),
    ("redis-cli -h db -a «Kf9x;Zq83» ping", "redis-cli -a"),
    ("mongo -u bob -p «Kf9x;Zq83» db", "mongo -p"),
    ("sqlcmd -S db -U sa -P «Kf9x;Zq83»", "sqlcmd -P"),
    (f"az storage blob list --account-key «{B62}{B62}==»", "az --account-key"),
    (f"echo «{B62}» | az devops login", "echo into az devops login"),
    ("echo '«Kf9x Zq83»' | docker login -u bob --password-stdin", "echo into docker login"),
    (f"oathtool --totp -b «{BASE32}»", "oathtool -b"),
    (f"bob:«$apr1${B62[:8]}${B62[:22]}»", "an $apr1$ hash"),
    (
        f"curl -H 'Authorization: Bearer \\\n  «{B62}{B62}»'",
        "a header that goes on in the next line",
    ),
    ("mysqlsh --password \\\n    «Kf9x;Zq83» db", "a flag that goes on in the next line"),
    ("mysqlsh --passWord «Kf9x;Zq83» db", "a flag whose case parts its word"),
    ("gpg --batch --key-passPhrase=«Kf9x;Zq83»", "another one"),
    ("the password is «hunter2!x»", "prose"),
    ("The password for the old server is «Kf9xZq83».", "prose, the end of a sentence"),
    ("credentials: admin / «Kf9x;Zq83»", "credentials"),
    ("Das Passwort ist «Kf9xZq83», bitte", "German"),
    (f"the card «{GROUPED}» was charged", "a card number in groups"),
    (f"card=«{PLAIN_CARD}»", "a card number"),
    (f"amex «{AMERICAN}»", "a card number of 15 digits"),
]
HARMLESS = """
max_tokens=4096
sort_key=name
PASSED=3
MONKEY=banana7x
secretName: my-app-tls-2024
imagePullSecret: my-registry-2024
secret: regcred
password: string
password: string;
password: 'required'
password = getPassword(user, 2)
password: z.string().min(8)
password=password1
password = config.db.password
password = input("Password: ")
password = getpass.getpass()
Password: at least 8 characters
DB_PASSWORD=${DB_PASSWORD}
DB_PASSWORD=$1
password=<password>
REQUIRE_PASSWORD=true
ALLOW_EMPTY_PASSWORD=yes
"pass": 12, "fail": 3
pass: 5
first_pass=true
PASS: src/auth/a1.test.js
bypass: check2run
compass=north42x
token = tokens[pos1]
token: "identifier"
next_page_token=null
TOKEN_LIMIT=4096
pad_token_id=50256
eos_token="</s>"
bos_token: "<|begin_of_text|>"
special_token = "[CLS]"
if (token === Token.Number2) return
case Token::Plus2: x
const token = await client.getToken2()
token: ${{ secrets.GITHUB_TOKEN }}
csrf_token: {{ csrf_token() }}
key=value
key = f"{a}-{b}1"
sorted(rows, key=lambda r: r[1])
key: ${{ runner.os }}-node-18
key: 'ArrowUp'
"key": "sidebar-item-3"
key="menu.file.open2"
cache_key: v1-deps-linux-x64
primary_key=user_id
partition_key = "2024-01-01"
routing-key: orders.created.v2
idempotency_key=123e4567-e89b-12d3-a456-426614174000
foreign_key: users.id2
shortcut_key: "F12"
hotkey: ctrl+shift+p
ssh_key=~/.ssh/id_rsa
public_key_path=/home/u/.ssh/id_ed25519.pub
apiKey: process.env.API_KEY_2
"api_key": "api_key"
secret = os.environ["SECRET_2"]
the password is base64-encoded and sha256-hashed
reset the password to continue; the password is too short
docker run -p 8080:80 nginx
mkdir -p build && go -p 4
https://packages.example.org:443/@scope/pkg@1.2.3
http://localhost:3000/users/@me
order 4111 1111 1111 1112, run 1234567890123456, at 1718000000000
0.4539148803436467 and 4539148803436460123
""".strip().split("\n")
SURROUNDINGS = ("{}", "I see\n{}\nthere", "$ {}\n", "  {}")
AROUND_HARMLESS = (*SURROUNDINGS, "`{}`", "so {} it is")


def parts(marked: str) -> tuple[str, str]:
    before, _, rest = marked.partition("«")
    secret, _, after = rest.partition("»")
    return before + secret + after, secret


def test_the_secret_goes_whole_and_nothing_else_does():
    wrong = []
    for marked, how in [*ASSIGNED, *KINDS]:
        for surroundings in SURROUNDINGS:
            text, secret = parts(marked)
            text = (
                text.replace("\n", "\n" + " " * surroundings.index("{}"))
                if "\n{" not in surroundings
                else text
            )
            place = surroundings.replace("{}", text)
            found = [place[one.start : one.end] for one in find_secrets(place)]
            if found != [secret] or secret in redact(place):
                wrong.append((how, place, found))
    assert wrong == []


def test_a_secret_goes_in_every_spelling():
    texts = list(spellings())
    assert len(texts) > 2000
    assert [text for text, secret in texts if secret in redact(text)] == []


def test_what_is_harmless_stays():
    assert len(HARMLESS) >= 60
    assert len(ONE_LINERS) >= 60
    places = [
        around.replace("{}", text) for text in HARMLESS + ONE_LINERS for around in AROUND_HARMLESS
    ]
    assert [redact(place) for place in places if redact(place) != place] == []


def test_what_test_runners_print_stays():
    lines = [line for output in TEST_RUNS.values() for line in output.split("\n")]
    assert [redact(text) for text in [*TEST_RUNS.values(), *lines] if redact(text) != text] == []
