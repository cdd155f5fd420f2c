"""Texts without secrets that look a little like some, from developers and their tools."""

from __future__ import annotations

ONE_LINERS = """
commit 3f786850e387550fdab836ed7e6dc881de23001b
index 8ab686eafe..d34db33f01 100644
Merge branch 'token-refresh' into main (#1234)
"key": "123e4567-e89b-12d3-a456-426614174000"
{"id":"00893aaf-19fa-41d2-8238-13269b9b3ca0","key":"7f4cbabd-ee7a-436a-bd3f-ce9fdcaa8084"}
sessionKey: agent:main:main
session_id=00893aaf-19fa-41d2-8238-13269b9b3ca0
"integrity": "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="
golang.org/x/text v0.14.0 h1:ScX5w1eTa3QqT8oi6+ziP7dTV1S2+ALU0bI+0zXKWiQ=
checksum = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
![logo](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==)
data:font/woff2;base64,d09GMgABAAAAAAK8AA0AAAAABVAAAAJoAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAP0ZGVE0cGh4GYACCUggC
pass: true
pass: 12
passed: 12, failed: 0
PASS: TestRefreshToken2
--- PASS: TestX (28.8s)
--- PASS: FuzzToken/seed#0 (0.00s)
    --- PASS: TestLogin/9f8a7b6c5d4e (0.00s)
PASS: login wrong password with key2
const cases = ['password2', 'wrong password', 'Token-v2', 'expired key 3'];
    --- PASS: TestLogin/with_password2 (0.00s)
PASS: tests/login-1.sh 3 - password2 is asked for
"pass": true, "fail": false
first pass: Parser2 runs
✅ All quality checks pass:** Build, typecheck2
two-pass: v2.1
password: <your password>
password: your-password-here1
password: ********
password: [hidden]
password: ${DB_PASSWORD}
password: {{ vault_db_password }}
PASSWORD=$PASSWORD
export DB_PASSWORD="$(pass show db/prod1)"
--password "$PASSWORD" --token=$TOKEN_2
--password <password> [--token TOKEN]
os.environ["TOKEN"] = os.environ["TOKEN_2"]
token = os.environ.get("GITHUB_TOKEN")
const token = process.env.API_TOKEN_2;
api_key = settings.OPENAI_API_KEY
password: user.password2,
password = form.cleaned_data["password1"]
password: Schema.string2
self.password = password1
if password1 != password2: raise ValueError("passwords differ")
def login(user: str, password: str, token: str | None = None) -> None:
type Credentials = { password: string; token?: string; apiKey: string }
The password is too short, and the token has expired after 24h.
Reset your password at https://example.org/reset?step=2 to continue.
the password is hashed with bcrypt2 before it is stored
The password field is required; passwords must have 8 characters.
Log in with GitHub / Google, or with a passkey.
Log in with user and password as in step 2.
login with OAuth2 / SAML2
credentials: see docs/setup-2.md
le mot de passe est obligatoire
das Passwort ist falsch
Please enter the passphrase for /home/bob/.ssh/id_ed25519:
passphrase: used to encrypt the key
color: #a1b2c3; background: url(sprite-2x.png); z-index: 1000
.password-input2 { border: 1px solid #ccc }
<input type="password" name="password2" id="password-field-1">
https://example.org/docs/authentication#token-refresh-2
https://github.com/acme/app/pull/42/files#diff-3f786850e387550fdab836ed7e6dc881de23001b
npm install passport-jwt@4.0.1 jsonwebtoken@9.0.2 keytar@7.9.0
/usr/lib/python3.11/site-packages/keyring/backends/SecretService.py
toolu_01A09q90qw90lq917835lq9 msg_01XFDUDYJgAACzvnptvVoYEL req_011CSHoEeqs5C35K2UUqR7Fy
claude-opus-4-5-20251101 gpt-4o-mini-2024-07-18 text-embedding-3-small
total_tokens: 123456, cache_read_input_tokens: 98765
max_tokens=4096 tokenizer=cl100k_base
PWD=/srv/agent/app2 OLDPWD=/srv/agent
keyboard: us-intl2, keymap=vim2, keyframes 0%
<kbd>Ctrl</kbd>+<kbd>K2</kbd>
foreign key: users(id2), primary key (order_id2)
cache-key: node-modules-v2-linux-x64
ssh -i ~/.ssh/id_ed25519 -p 2222 bob@10.0.0.1
docker run -p 8080:80 -e TZ=UTC+2 nginx:1.25
curl -u "$USER:$TOKEN" https://api.example.org/v2
mysql -u root -p shop < dump2.sql
http -a "$USER:$PASS" https://example.org
openssl enc -aes-256-cbc -kfile key2.txt -in a
postgres://user:$PASSWORD@localhost:5432/db
git clone https://github.com/acme/app.git && cd app && git checkout v1.2.3
seed: 42
random_seed=1234567890 SEED=20240101
MFA_SEED=<base32 seed>
the seed is 1234, so the result is the same twice
private_key_path = "certs/server-2.pem"
It begins with -----BEGIN RSA PRIVATE KEY----- and so on.
key: "ArrowDown", code: "Digit2", keyCode: 40
version 1.2.3-rc.4+build.567, released 2024-01-01T10:00:00.000Z
ETag: W/"5e0f-18c2a1b3d40"
x-request-id: 01HQ2K3M4N5P6Q7R8S9T0V1W2X
""".strip().split("\n")

TEST_RUNS = {
    "go test": """\
=== RUN   TestLogin
=== RUN   TestLogin/wrong_password
=== PAUSE TestToken2
=== CONT  TestToken2
--- PASS: TestLogin (28.80s)
    --- PASS: TestLogin/wrong_password (0.00s)
    --- PASS: TestLogin/secret=abc123def (0.01s)
--- SKIP: TestKey3 (0.00s)
    key_test.go:42: no token: TOKEN_2 is not set
--- FAIL: TestPassword (0.02s)
    auth_test.go:17: password: got "empty", want "required"
FAIL
FAIL\tgithub.com/acme/app/internal/auth\t0.153s
ok  \tgithub.com/acme/app/internal/token\t(cached)\tcoverage: 87.5% of statements
PASS
{"Time":"2024-01-01T10:00:00.000Z","Action":"pass","Package":"github.com/acme/app","Test":"TestToken2","Elapsed":0.02}
""",
    "pytest": """\
============================= test session starts ==============================
platform linux -- Python 3.11.7, pytest-8.3.4, pluggy-1.5.0 -- /srv/app/.venv/bin/python
Using --randomly-seed=1234567890
rootdir: /srv/app, configfile: pyproject.toml
tests/test_auth.py::test_password_is_hashed PASSED                       [ 25%]
tests/test_auth.py::test_token[key2-secret3] PASSED                      [ 50%]
tests/test_auth.py::TestLogin::test_wrong_password FAILED                [ 75%]
E       AssertionError: assert 'password' == 'Password1'
E         - Password1
E         + password
E       KeyError: 'token_2'
tests/test_auth.py:17: AssertionError
FAILED tests/test_auth.py::TestLogin::test_wrong_password - AssertionError: assert 401 == 200
=================== 1 failed, 3 passed, 2 warnings in 28.81s ===================
""",
    "cargo test": """\
   Compiling secrecy v0.8.0
   Compiling token-store v0.1.2 (/srv/app/crates/token-store)
    Finished `test` profile [unoptimized + debuginfo] target(s) in 12.34s
     Running unittests src/lib.rs (target/debug/deps/token_store-3f786850e387550f)
running 3 tests
test password::tests::hash_is_argon2 ... ok
test token::tests::key_2_expires ... FAILED
test secret::tests::debug_is_redacted ... ignored
---- token::tests::key_2_expires stdout ----
thread 'token::tests::key_2_expires' panicked at src/token.rs:42:9:
assertion `left == right` failed
  left: Token { key: "key2" }
 right: Token { key: "key3" }
test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s
""",
    "jest": """\
PASS src/auth/password2.test.js (5.123 s)
PASS: src/auth/token2.test.js
FAIL src/auth/login.test.js
  Login
    ✓ password: is required (3 ms)
    ✓ passphrase: minLength2 applies (1 ms)
    ✕ token: refreshes2 after 401 (12 ms)
  ● Login › token: refreshes2 after 401
    expect(received).toBe(expected) // Object.is equality
    Expected: "token2"
    Received: undefined
      41 |     const { password1, token } = await login(user2)
    > 42 |     expect(token).toBe("token2")
         |                   ^
Test Suites: 1 failed, 2 passed, 3 total
Snapshots:   0 total
Time:        5.987 s, estimated 6 s
""",
    "others": """\
PASS: gdb.base/password2.exp: test token2
XPASS: libstdc++/key3.cc execution test
# PASS: 12
# FAIL: 0
ok 3 - password: asked for twice
1..3 # pass: 3
Checks pass: Build2, lint
""",
}
