"""Secrets of each kind are found everywhere, nothing else is, and the search is fast."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from share import some
from text_scene import RULES, Sample, fill, samples

from session_memory.common.text.sanitize import quotable
from session_memory.common.text.secrets import assignments, redaction, rules, scan
from session_memory.common.text.secrets.redaction import (
    Secret,
    find_secrets,
    redact,
    redact_all,
    spots,
)
from session_memory.common.text.secrets.rules import SecretRule

ROOT = Path(__file__).resolve().parents[3]
TRANSCRIPTS = ROOT.parent / "shared" / "transcripts"
SAMPLES = [sample for seed in range(some(5)) for sample in samples(seed)]
KINDS = sorted({rule.kind for rule in RULES})
RANDOM = random.Random(1)
KEY = fill("b62", 40, RANDOM)
TOKEN = "gh" + "p_" + fill("b62", 36, RANDOM)
PEM = fill("pem", 6, RANDOM)
BEGIN, END = (f"-----{word} PRIVATE KEY-----" for word in ("BEGIN", "END"))
SURROUNDINGS = (
    "{}",
    "I see {} here.",
    "It is {}.",
    "({})",
    "run `{}` now",
    "one\n{}\ntwo",
    "日本\u3000{}\u3000語",
    r"one\n{}\ntwo",
    "$ {}\n",
)


def placed(sample: Sample, surroundings: str) -> tuple[str, str]:
    """The text, and the text without the secret."""
    text = surroundings.replace("{}", sample.text)
    gap = sample.text[: sample.start] + "[redacted]" + sample.text[sample.end :]
    return text, surroundings.replace("{}", gap)


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def blanked(text: str) -> str:
    """`text` with every kind left out of its marks."""
    for kind in KINDS:
        text = text.replace(f"[redacted: {kind}]", "[redacted]")
    return text


class TestSamples:
    def test_every_secret_goes_and_nothing_else_does(self):
        wrong = []
        for sample in SAMPLES:
            for surroundings in SURROUNDINGS:
                text, expected = placed(sample, surroundings)
                if blanked(redact(text)) != expected:
                    wrong.append((sample.kind, text, redact(text)))
        assert wrong == []

    def test_every_secret_goes_from_a_json_string_and_from_json_within_json(self):
        left = []
        for sample in SAMPLES:
            text = as_json({"type": "user", "text": f"I see {sample.text}"})
            if as_json(sample.secret)[1:-1] in redact(text):
                left.append(text)
            within = as_json({"arguments": text})
            if as_json(as_json(sample.secret)[1:-1])[1:-1] in redact(within):
                left.append(within)
        assert left == []

    def test_every_secret_goes_by_its_kind(self):
        other = {
            sample.rule
            for sample in SAMPLES
            if f"[redacted: {sample.kind}]" not in redact(sample.text)
        }
        assert other == set()

    def test_every_rule_has_a_sample_that_it_matches_itself(self):
        unmatched = {rule.number for rule in RULES if rule.pattern}
        for sample in [sample for sample in SAMPLES if sample.rule in unmatched]:
            match = scan._compiled(sample.rule).match
            hits = [match(sample.text, at) for at in range(sample.start + 1)]
            # its match ends where the value begins
            taken_whole = "<value>" in RULES[sample.rule].pattern
            if any(
                hit and hit.end() >= (sample.start - 1 if taken_whole else sample.end)
                for hit in hits
            ):
                unmatched.discard(sample.rule)
        assert [RULES[number].pattern for number in unmatched] == []


class TestPlaces:
    def test_only_the_secret_goes(self):
        expected = [
            ("postgres://user:pw@host/db", "postgres://user:[redacted: url password]@host/db"),
            ("redis://:hunter2@host:6379/0", "redis://:[redacted: url password]@host:6379/0"),
            ("password=hunter2 and on", "password=[redacted: password] and on"),
            ("password: hunter2", "password: [redacted: password]"),
            ("password = 'hunter 2'", "password = '[redacted: password]'"),
            (
                '{"password": "hunter2", "user": "bob"}',
                '{"password": "[redacted: password]", "user": "bob"}',
            ),
            (r"{\"password\": \"hunter2\"}", r"{\"password\": \"[redacted: password]\"}"),
            ("<password>hunter2</password>", "<password>[redacted: password]</password>"),
            ("cfg['db_password'] = 'hunter2'", "cfg['db_password'] = '[redacted: password]'"),
            ("mysql -u root -phunter2 shop", "mysql -u root -p[redacted: password] shop"),
            ("docker login --password hunter2 x", "docker login --password [redacted: password] x"),
            (f"Authorization: Bearer {KEY}", "Authorization: Bearer [redacted: bearer token]"),
            (
                f"-H 'Authorization: token {KEY}' -s",
                "-H 'Authorization: token [redacted: bearer token]' -s",
            ),
            (f"<apiKey>\n  {KEY}\n</apiKey>", "<apiKey>\n  [redacted: api key]\n</apiKey>"),
            (f'set("X_API_KEY", "{KEY}")', 'set("X_API_KEY", "[redacted: api key]")'),
            (f"GET /?access_token={KEY}&page=2", "GET /?access_token=[redacted: token]&page=2"),
            (f"const clientSecret = `{KEY}`;", "const clientSecret = `[redacted: secret]`;"),
            (f"API_KEY := '{KEY}'", "API_KEY := '[redacted: api key]'"),
            (f'"apiToken" => "{KEY}"', '"apiToken" => "[redacted: token]"'),
        ]
        assert [(text, redact(text)) for text, _ in expected] == expected

    def test_the_most_specific_name_is_given(self):
        assert redact(f"password={TOKEN}") == "password=[redacted: github token]"
        assert (
            redact(f"https://x:{TOKEN}@github.com")
            == "https://x:[redacted: github token]@github.com"
        )

    def test_secrets_that_are_glued_together_all_go(self):
        assert redact(f"{TOKEN}-{TOKEN}") == "[redacted: github token]-[redacted: github token]"
        dapi = "dapi" + fill("hex", 32, RANDOM)
        assert redact(f"X-Amz-Signature={fill('hex', 64, RANDOM)}{dapi}").count("[redacted: ") == 2

    def test_offsets_and_kinds_are_told(self):
        assert find_secrets(f"a {TOKEN} b") == [Secret("github token", 2, 42)]


class TestPrivateKeys:
    def test_a_block_goes_whole_also_when_it_is_cut_off(self):
        blocks = [
            f"{BEGIN}\n{PEM}\n{END}",
            f"{BEGIN}\r\n{PEM}\r\n{END}".replace("\n", "\r\n"),
            f"{BEGIN}\n{PEM}\n{END}".replace("\n", r"\n"),
            f"{BEGIN}\n{PEM}\n{END}".replace("\n", r"\\n"),
            f"{BEGIN}\n{PEM}\n{END}".replace("\n", '\\n" +\n    "'),
            f"{BEGIN}\n{PEM}\n{END}".replace("\n", "\n      "),
            f"{BEGIN}\n{PEM}\n{END}".replace("\n", "\n     7→"),
            f"{BEGIN}\n{PEM}\n{END}".replace("\n", "\n     7 "),
            f"{BEGIN}\n{PEM}",
            f"{BEGIN}\n{PEM}".replace("\n", r"\n"),
            f"{BEGIN}\n{PEM}"[:300],
            f"{BEGIN}\n{PEM}"[:100],
        ]
        for place in ("{}", 'key = "{}"', "one\n{}\n\nAnd so on."):
            texts = [place.replace("{}", block) for block in blocks]
            assert {redact(text) for text in texts} == {
                place.replace("{}", "[redacted: private key]")
            }

    def test_several_blocks_leave_what_stands_between_them(self):
        block = f"{BEGIN}\n{PEM}\n{END}"
        assert (
            redact(f"{block}\nand\n{block}")
            == "[redacted: private key]\nand\n[redacted: private key]"
        )

    def test_a_header_without_a_key_stays(self):
        assert redact(f"It begins with {BEGIN} and so on.") == f"It begins with {BEGIN} and so on."

    def test_a_public_key_or_a_certificate_stays(self):
        for what in ("PUBLIC KEY", "CERTIFICATE"):
            text = f"-----BEGIN {what}-----\n{PEM}\n-----END {what}-----"
            assert redact(text) == text


class TestOrdinaryText:
    def test_it_stays(self):
        texts = [
            "Add a password field, check the token, store the secret: the API key page is next.",
            "password: string; passwordHash: string | null",
            "const password = await getPassword(user)",
            "password = os.environ['DB_PASSWORD']",
            'password="${DB_PASSWORD}" token="{{ token }}"',
            "DB_PASSWORD=$DB_PASSWORD PASSWORD=<password>",
            "password=your_password_here api_key=YOUR_API_KEY_1234",
            "password: 'required', confirmPassword: \"password\"",
            "if (password !== confirmPassword2) return",
            "export function challenge(secret: Uint8Array, token: Base64String2): Promise<void>",
            "const secretBase64Url = encodeBase64Url(secret)",
            "token = generateAccessToken2(user.id)",
            "tokens: 123456, input_tokens: 4096, cacheReadInputTokens: 1234567890",
            "key: 2024-01-01T10:00:00.000Z, token_count=12345678901234",
            "commit 3f786850e387550fdab836ed7e6dc881de23001b",
            '{"uuid":"123e4567-e89b-12d3-a456-426614174000","sessionId":"00893aaf-19fa-41d2-8238-13269b9b3ca0"}',
            "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            '"integrity": "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="',
            "claude-3-5-sonnet-20241022 gpt-4o-mini-2024-07-18",
            "https://example.org:8080/a/b?c=d@e git@github.com:o/r.git user@host",
            "postgres://user:${PASSWORD}@host/db https://<user>:<password>@host",
            "sk-learn task-force-one-two-three ask-me-anything-about-this-2",
            "/usr/lib/python3.11/site-packages/session_memory/common/text/secrets/rules.yaml",
            "AKIA" + "IOSFODNN7" + "EXAMPLE",
            "Bearer authentication, basic authorization, Authorization: Bearer <token>",
            "Authorization: Bearer $TOKEN_123456789012",
            "Cookie: theme=dark",
            "| key | value |\n|-----|-------|\n| a   | b     |",
            "toolu_01A09q90qw90lq917835lq9 msg_01XFDUDYJgAACzvnptvVoYEL",
        ]
        assert [redact(text) for text in texts] == texts

    def test_a_mark_stays_wherever_it_stands(self):
        places = (
            "{}",
            "password={}",
            '"token": "{}"',
            "{}={}",
            "x://a:{}@b",
            "--password {}",
            "the password is {}",
            "pass: {}",
        )
        texts = [place.replace("{}", f"[redacted: {kind}]") for kind in KINDS for place in places]
        assert [redact(text) for text in texts] == texts

    def test_a_mark_names_nothing(self):
        text = f"[redacted: api key] = {KEY}"
        assert redact(text) == text

    def test_no_secret_stands_in_these_files(self):
        files = [
            *(ROOT / "session_memory" / "common" / "text" / "secrets").glob("[!r]*.py"),
            ROOT / "docs" / "use" / "secrets.md",
        ]
        files += [ROOT / "tests" / "text_scene.py", ROOT / "bench" / "secrets.py"]
        assert {path.name: find_secrets(path.read_text("utf-8")) for path in files} == {
            path.name: [] for path in files
        }


PIECES = st.one_of(
    st.sampled_from(SAMPLES).map(lambda sample: sample.text),
    st.sampled_from(SAMPLES).flatmap(
        lambda sample: st.integers(0, len(sample.text)).map(lambda n: sample.text[:n])
    ),
    st.sampled_from(
        [
            "password=",
            "token: ",
            'api_key="',
            "Bearer ",
            "\\n",
            "\n",
            "'",
            '"',
            "]",
            "[",
            "://",
            "@",
            "=",
        ]
    ),
    st.sampled_from([f"[redacted: {kind}]" for kind in KINDS]),
    st.text(max_size=5),
)
TEXTS = st.lists(PIECES, max_size=6).map("".join)


def test_a_secret_of_each_kind_is_redacted_among_other_quoted_texts() -> None:
    for sample in SAMPLES:
        texts = ["fix the parser", sample.text, "src/parser.py"]
        assert quotable(texts) == [quotable([text])[0] for text in texts], sample


TOGETHER = st.lists(
    st.one_of(
        TEXTS,
        st.sampled_from(
            ["", "--", "the name:", "api key", "100%", "50%41KIA", "contraseña:", "x" * 2_500]
        ),
    ),
    max_size=8,
)


class TestTogether:
    """Many texts in one call have the result that each has alone."""

    def test_samples_at_each_end_of_their_texts_and_between_harmless_ones(self):
        texts = [
            text
            for sample in SAMPLES
            for text in ("fix the parser:", sample.text, "", f"{sample.text}\nis it", "src/a_1.py")
        ]
        assert redact_all(texts) == list(map(redact, texts))

    def test_a_secret_in_two_texts_is_none(self):
        texts = ["the password:", KEY, TOKEN[:20], TOKEN[20:], "API_KEY=", f"'{KEY}'", "%", KEY]
        assert redact_all(texts) == list(map(redact, texts))

    @settings(max_examples=some(1000), deadline=None)
    @given(TOGETHER)
    def test_any_texts(self, texts):
        assert redact_all(texts) == list(map(redact, texts))

    @pytest.mark.skipif(not TRANSCRIPTS.exists(), reason="../shared/transcripts is not there")
    def test_lines_of_real_transcripts(self):
        for path in sorted(TRANSCRIPTS.rglob("*.jsonl"))[::4]:
            texts = path.read_text("utf-8", "replace").split("\n")[:100]
            assert redact_all(texts) == list(map(redact, texts)), path

    def test_what_was_searched_before_changes_nothing(self):
        texts = [
            text
            for sample in SAMPLES
            for text in (sample.text[1:], sample.text, f"a=1234567890123%3D{sample.text}")
        ]
        first = []
        for text in texts:
            for memory in (
                *(redaction._dull_words, redaction._dull_runs, redaction._known_roots),
                *(redaction._known_names, assignments._known_names),
            ):
                memory.clear()
            first.append(redact(text))
        assert list(map(redact, texts)) == list(map(redact, texts)) == first

    def test_another_thread_may_clear_what_is_remembered(self, monkeypatch):
        class Cleared(dict):
            def __setitem__(self, key, value):
                """Forget the value at once."""

        expected = [redact(sample.text) for sample in SAMPLES]
        for module in (redaction, assignments):
            monkeypatch.setattr(module, "_known_names", Cleared())
        assert [redact(sample.text) for sample in SAMPLES] == expected


class TestProperties:
    @settings(max_examples=some(1000), deadline=None)
    @given(TEXTS)
    def test_redacting_twice_is_redacting_once(self, text):
        assert redact(redact(text)) == redact(text)

    @settings(max_examples=some(1000), deadline=None)
    @given(TEXTS)
    def test_finds_are_in_order_and_apart(self, text):
        ends = [(secret.start, secret.end) for secret in find_secrets(text)]
        assert all(start < end for start, end in ends)
        assert all(end <= start for (_, end), (start, _) in pairwise(ends))

    @settings(max_examples=some(1000), deadline=None)
    @given(st.lists(TEXTS, max_size=4))
    def test_texts_that_are_quoted_together_are_as_each_alone(self, texts):
        assert quotable(texts) == [quotable([text])[0] for text in texts]

    @settings(max_examples=some(500), deadline=None)
    @given(st.text(st.characters(exclude_categories=())))
    def test_it_raises_for_no_text(self, text):
        redact(text)

    def test_it_raises_for_no_odd_or_long_text(self):
        texts = [
            "",
            "\x00",
            "\ud800",
            "\udfff=\ud800",
            f"\ud83d{TOKEN}\x00",
            "é" * 5_000_000,
            "a=b " * 2_500_000,
        ]
        assert not any(TOKEN in redact(text) for text in texts)


class TestCost:
    def test_text_without_secrets_makes_a_bare_interpreter_import_only_builtin_modules(self):
        text = "[main] Fixed the password page, and api keys: 2 of 3 tests pass; see src/auth/token.py."
        code = (
            "import sys; sys.path.insert(0, sys.argv[1]); before = set(sys.modules)\n"
            "from session_memory.common.text.secrets.redaction import redact\n"
            "assert redact(sys.argv[2]) == sys.argv[2]\n"
            "print(*(set(sys.modules) - before))"
        )
        command = [sys.executable, "-I", "-S", "-c", code, str(ROOT), text]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        others = {name for name in done.stdout.split() if not name.startswith("session_memory")}
        assert others <= {"__future__", *sys.builtin_module_names}
        assert "session_memory.common.text.secrets.scan" not in done.stdout

    @pytest.mark.parametrize(
        "text",
        [
            "grep pattern=buffer docs/camewu_path2.sql",
            "2 uses of $HOME/.cache/app_1 and $1 in it",
            "see lines 1650-1710 and 1998-2004 of it",
            "to login or set keys, open docs/v2.1/index.html\nNote: 2",
            "type /login, then choose model-3.5 or 4",
            "the last login() of v2.1: it failed 3 times",
            '{"kty": "RSA", "id": "abcdefghijklmnopqrstuvw"}',
            "see https://example.org/a/b and write to me@example.org",
            "export OPENAI_API_KEY=your-key-here",
            "Authorizations and cookies4all",
            "an error in BearerTokens2 of it",
        ],
    )
    def test_text_that_only_resembles_a_secret_needs_no_regex(self, text):
        assert not spots(text)

    @pytest.mark.parametrize("name", sorted(scan.CLASSES.keys() & rules.CLASSES.keys()))
    def test_the_characters_of_a_class_are_those_of_its_regex(self, name):
        regex = scan.CLASSES[name].partition("{")[0]
        matching = {chr(code) for code in range(256) if re.match(f"(?a){regex}", chr(code))}
        assert matching == set(rules.CLASSES[name])

    def test_a_bare_interpreter_finds_what_one_does_that_has_loaded_the_search(self):
        texts = [sample.text for sample in samples(9)]
        code = (
            "import json, sys; sys.path.insert(0, sys.argv[1])\n"
            "from session_memory.common.text.secrets.redaction import redact\n"
            "found = []\n"
            "for text in json.load(sys.stdin):\n"
            "    sys.modules.pop('session_memory.common.text.secrets.scan', None)\n"
            "    found.append(redact(text))\n"
            "json.dump(found, sys.stdout)"
        )
        command = [sys.executable, "-I", "-S", "-c", code, str(ROOT)]
        done = subprocess.run(
            command, input=json.dumps(texts), capture_output=True, text=True, check=True
        )
        assert json.loads(done.stdout) == [redact(text) for text in texts]

    @pytest.mark.cost
    def test_time_grows_no_faster_than_the_text(self):
        """Of a rule's keywords and of pieces of its samples over and over: the worst of them, an
        eighth and whole.

        Where that leaves a doubt, as it may on a busy machine, a tenth and the whole of a longer
        text."""
        slow = []
        for rule in RULES:
            worst = max(pieces(rule), key=lambda piece: seconds(piece, 200))
            in_doubt = seconds(worst, 4_000) > 14 * min(seconds(worst, 500) for _ in range(3))
            if in_doubt:
                short, long = (
                    min(seconds(worst, length) for _ in range(3)) for length in (3_000, 30_000)
                )
                slow += [(rule.kind, worst)] if long >= max(35 * short, 0.1) else []
        assert slow == []

    @pytest.mark.cost
    def test_values_and_commands_without_an_end_take_seconds_a_megabyte(self):
        for piece in (
            "--auth-token=wTR7lKTP",
            "--with-token=",
            "oathtool -b --totp",
            "mysql -p",
            "curl -u a:",
        ):
            assert seconds(piece, 30_000) < 0.5, piece

    @pytest.mark.cost
    def test_many_short_texts_together_take_less_time_than_each_alone(self):
        texts = [
            f"I read src/app/main_{n}.py and fix test {n} of the parser." for n in range(2_000)
        ]
        together, alone = [], []
        for _ in range(3):
            began = time.process_time()
            redact_all(texts)
            ended = time.process_time()
            list(map(redact, texts))
            together.append(ended - began)
            alone.append(time.process_time() - ended)
        assert min(together) < 0.7 * min(alone)

    @pytest.mark.cost
    @pytest.mark.parametrize("piece", ["a", "-", "word ", "x\n"])
    def test_ten_megabytes_of_one_kind_of_character_take_little_memory(self, piece):
        text = piece * (10_000_000 // len(piece))
        tracemalloc.start()
        try:
            assert redact(text) == text
            assert tracemalloc.get_traced_memory()[1] < 8 * len(text)
        finally:
            tracemalloc.stop()

    @pytest.mark.cost
    @pytest.mark.parametrize(
        "piece",
        ["=", "-", "a1", '"', "\\", "eyJ", "password=", "token: 1a", "://a:", "A", "Cookie: a=b; "],
    )
    def test_a_megabyte_of_anything_takes_seconds(self, piece):
        assert seconds(piece, 1_000_000) < 20


ENDS = ("", "a1b2", "=", ": ", "-", ".", " ", "\n", '"', "\\", "a" * 40, " a=b;")


def pieces(rule: SecretRule) -> list[str]:
    ends = ("=", "=1", ": a1", '="') if rule.form == "named" else ENDS
    found = [keyword.lstrip("*") + end for keyword in rule.keywords for end in ends]
    texts = [sample.text for sample in SAMPLES if sample.rule == rule.number]
    return found + [text[: len(text) * part // 4] for text in texts for part in (1, 2, 3, 4)]


def seconds(piece: str, size: int) -> float:
    text = piece * (size // max(1, len(piece)))
    start = time.process_time()
    find_secrets(text)
    return time.process_time() - start


def test_a_kind_is_a_few_plain_words():
    assert [
        kind
        for kind in KINDS
        if not kind.replace(".", "").replace(" ", "").isalnum() or len(kind) > 30
    ] == []


def test_the_second_look_reads_only_the_rules_that_it_needs() -> None:
    program = "from session_memory.common.text.secrets import rules, scan; print(len(rules._rules), len(rules.ROWS))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    read, known = map(int, done.stdout.split())
    assert read == len(scan.KINDS) < known / 10


@pytest.mark.parametrize("seed", range(20))
def test_the_long_runs_are_those_with_a_digit_and_the_very_long_ones(seed: int) -> None:
    numbers = random.Random(seed)
    lengths = (1, 2, 13, 14, 15, 34, 35, 36, 80)
    characters = ("ab/", "ab/", "ab1", "123", "=-:")
    for _ in range(200):
        runs = [
            "".join(numbers.choices(numbers.choice(characters), k=numbers.choice(lengths)))
            for _ in range(numbers.randrange(8))
        ]
        text = numbers.choice(" (\n").join(runs).encode()
        inside = text.translate(redaction.IN_RUNS) + b"\0"
        expected = [
            (*run.span(), has_digit)
            for run in re.finditer(rb"[^ (\n]{14,}", text)
            if (has_digit := re.search(rb"\d", run[0]) is not None) or len(run[0]) > 34
        ]
        shape = text.translate(redaction.DIGITS_AS_ZERO)
        assert [*redaction._long_runs(inside, shape)] == expected
