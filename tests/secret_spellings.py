"""Secrets in the ways that people and programs write them: each form in twenty spellings or
more."""

from __future__ import annotations

import random
from collections.abc import Iterator

from text_scene import fill

RANDOM = random.Random(11)
PASSWORDS = ("Maple.tunnel36", "Tunnel-saffron37", "hunter2!x", "Kf9xZq83Lm")
# `name` is given `value`: in YAML, JSON, code, env files, shells, Markdown and chat.
GIVEN = (
    "{name}: {value}",
    "{name}:{value}",
    "{name}:  {value}",
    "{name}: '{value}'",
    '{name}: "{value}"',
    "- {name}: {value}",
    "* {name}: {value}",
    "  {name}: {value}",
    "**{name}:** {value}",
    "**{name}**: {value}",
    "`{name}: {value}`",
    "{name}: {value}  # for now",
    '"{name}": "{value}"',
    "'{name}': '{value}',",
    '{{"{name}":"{value}"}}',
    r"{{\"{name}\": \"{value}\"}}",
    '{name} = "{value}"',
    "{name}='{value}'",
    "{name} => '{value}'",
    'const {name} = "{value}";',
    "{name}: >-\n  {value}\n",
    "{name}: |\n    {value}\n",
    "{name}:\n  {value}\n",
    "<{name}>{value}</{name}>",
    "one\n{name}: {value}\ntwo",
    r"one\n{name}: {value}\ntwo",
    "> {name}: {value}",
    "+{name}: {value}",
    "    12→{name}: {value}",
)
IN_ENV_FILES = (
    "{name}={value}",
    "export {name}={value}",
    "{name}='{value}'",
    '{name}="{value}"',
    "set {name}={value}",
    "ENV {name}={value}",
    '$env:{name} = "{value}"',
    "docker run -e {name}={value} image",
    "env {name}={value} make",
    "{name}: {value}",
    "      - {name}={value}",
    '"{name}": "{value}"',
    "ARG {name}={value}",
    "one\n{name}={value}\ntwo",
    r"one\n{name}={value}\ntwo",
    "{name}={value} # old",
    "{name} = {value}",
    "`{name}={value}`",
    "| {name}={value} |",
    "heroku config:set {name}={value} -a app",
)
AS_OPTIONS = (
    "{flag} {value}",
    "{flag}={value}",
    "{flag} '{value}'",
    '{flag} "{value}"',
    "{flag}='{value}'",
    "tool {flag} {value} --go",
    "tool -v {flag}={value} x",
    "tool \\\n  {flag} {value}",
    "tool {flag} \\\n  {value}",
    "`tool {flag} {value}`",
    "$ tool {flag} {value}",
    "$ tool {flag}={value}",
    "run: tool {flag} {value}",
    r"one\ntool {flag} {value}\ntwo",
    '"command": "tool {flag} {value}"',
    "tool {flag} {value} && go",
    "tool {flag} {value}; go",
    "tool {flag} {value} | go",
    "sudo tool {flag} {value}",
    "- tool {flag} {value}",
)
AROUND = (
    "{}",
    "I see {} here",
    "It is {}.",
    "({})",
    "`{}`",
    "'{}'",
    '"{}"',
    "key: {}",
    "KEY={}",
    '"token": "{}"',
    r"{{\"a\": \"{}\"}}",
    "one\n{}\ntwo",
    r"one\n{}\ntwo",
    "https://x.org/?k={}",
    "-H 'X-Key: {}'",
    "<b>{}</b>",
    "[{}]",
    "use {}, please",
    "$ echo {}",
    "\t{}\t",
    "日本 {} 語",
    "a={}&b=1",
)
TOLD = (
    "log in with user admin and password {}",
    "login with user admin and password {}",
    "user admin and password {}",
    "Log in as admin with password {}",
    "log in with admin / {}",
    "# login with admin / {}",
    "// login with admin / {}",
    "Login: admin / {}",
    "login: admin/{}",
    "credentials: admin / {}",
    "Credentials are admin / {}",
    "creds: admin / {}",
    "the password is {}",
    "The password is {}.",
    "THE PASSWORD IS {}",
    "password is: {}",
    "the password for admin is {}",
    "the password was {}",
    "I set the password to {}",
    "the passphrase is {}",
    "Use user bob, password {}",
    "the passcode is now {}",
    "the password is `{}`",
    'the password is "{}"',
    "the password is **{}**",
    "le mot de passe est {}",
    "Le mot de passe est {}.",
    "le mot de passe est : {}",
    "mot de passe : {}",
    "Mot de passe: {}",
    "le mot de passe du serveur est {}",
    "utilisateur admin et mot de passe {}",
    "das Passwort ist {}",
    "Das Passwort lautet {}.",
    "Passwort: {}",
    "das Passwort für den Server ist {}",
    "Benutzer admin und Passwort {}",
    "Kennwort: {}",
    "Zugangsdaten: admin / {}",
    "la contraseña es {}",
    "Contraseña: {}",
    "usuario admin y contraseña {}",
    "a senha é {}",
    "Senha: {}",
    "la password è {}",
    "het wachtwoord is {}",
    "Wachtwoord: {}",
    "пароль: {}",
    "Пароль {}".replace(" {}", ": {}"),
    "密码：{}",
    "密码是{}",
    "パスワード: {}",
)
COMMANDS = (
    "http -a admin:{} https://x.org",
    "http POST -a admin:{} x.org/api",
    "https -a admin:{} x.org",
    "xh -a admin:{} x.org",
    "http --auth admin:{} x.org",
    "http --auth=admin:{} x.org",
    "http -a 'admin:{}' x.org",
    "http x.org -a admin:{}",
    "curl -u admin:{} https://x.org",
    "curl --user 'admin:{}' x.org",
    "openssl enc -aes-256-cbc -k {} -in a",
    "openssl enc -d -k '{}' -in a -out b",
    "openssl enc -aes256 -in a \\\n  -k {}",
    "openssl rsa -in a.pem -passin pass:{}",
    "openssl pkcs12 -export -passout pass:{} -out a",
    "openssl enc -pass pass:{} -in a",
    "smbclient //host/share -U bob%{}",
    "smbclient -L host -U 'bob%{}'",
    "smbclient -U=bob%{} //h/s",
    "smbclient --user=bob%{} //h/s",
    "smbmap -u bob -U bob%{}",
    "rpcclient -U bob%{} host",
    "rpcclient -U 'CORP\\bob%{}' host",
    "smbget -U bob%{} smb://h/s/f",
    "$ openssl enc -k {}",
    "`http -a admin:{} x.org`",
    r"one\nopenssl enc -k {}\ntwo",
    r"one\nsmbclient -U bob%{} //h/s\ntwo",
    "mysql -u root -p{} db",
    "docker login -u bob -p {} ghcr.io",
    "redis-cli -h h -a {} ping",
    "sshpass -p {} ssh host",
    "sqlcmd -S h -U sa -P {}",
    "ldapsearch -x -D cn=a -w {} -b dc=x",
    "mongosh -u bob -p {} db",
    "zip -P {} a.zip b",
    "echo {} | sudo -S make",
    "echo '{}' | docker login -u b --password-stdin",
)


def b62(size: int) -> str:
    return fill("b62", size, RANDOM)


def spellings() -> Iterator[tuple[str, str]]:
    """Yield texts, each with the secret in it."""
    yield from _given(
        (
            "password",
            "Password",
            "PASSWORD",
            "db_password",
            "pw",
            "pwd",
            "passphrase",
            "Passphrase",
            "admin.password",
        )
    )
    for password in PASSWORDS:
        for place in TOLD + COMMANDS:
            yield place.format(password), password
        for flag in ("--password", "--db-password", "--passphrase", "--PASSWORD"):
            yield from ((place.format(flag=flag, value=password), password) for place in AS_OPTIONS)
    for name in (
        "MFA_SEED",
        "TOTP_SEED",
        "OTP_SEED",
        "GITHUB_TOTP_SECRET",
        "MFA_SECRET",
        "AWS_MFA_SEED",
        "totp_seed",
    ):
        seed = fill("b32", 16, RANDOM)
        yield from ((place.format(name=name, value=seed), seed) for place in IN_ENV_FILES)
    for token in (
        f"vcp_{b62(56)}",
        f"vck_{b62(56)}",
        f"cfut_{b62(48)}",
        f"cfat_{b62(48)}",
        f"vercel_blob_rw_{b62(16)}_{b62(30)}",
        f"AQ.Ab8RN6{fill('url', 44, RANDOM)}",
    ):
        yield from ((place.format(token), token) for place in AROUND)
    yield from _twilio()
    yield from _totp()
    yield from _cut_off_keys()


def _given(names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name in names:
        for password in PASSWORDS:
            yield from ((place.format(name=name, value=password), password) for place in GIVEN)


def _twilio() -> Iterator[tuple[str, str]]:
    for call in (
        "Client({}, {})",
        "client = Client({}, {})",
        "twilio({}, {});",
        "new Twilio({},{})",
        "TwilioRestClient({},\n    {})",
        "auth=({}, {})",
        "Twilio::REST::Client.new({}, {})",
        "one\n  Client({}, {})\n",
        "`Client({}, {})`",
        "[{}, {}]",
    ):
        account, token = "AC" + fill("hex", 32, RANDOM), fill("hex", 32, RANDOM)
        for mark in ('"', "'", '\\"'):
            yield call.format(mark + account + mark, mark + token + mark), token


def _totp() -> Iterator[tuple[str, str]]:
    for way in ("totp", "hotp"):
        for rest in (
            "?secret={}",
            "?secret={}&issuer=x",
            "?issuer=x&secret={}",
            "?digits=6&secret={}&period=30",
            "?SECRET={}",
        ):
            secret = fill("b32", 32, RANDOM)
            for place in ("{}", 'uri = "{}"', "- {}", "`{}`", r"one\n{}\ntwo", "scan {} now"):
                yield place.replace("{}", f"otpauth://{way}/ACME:bob" + rest.format(secret)), secret


def _cut_off_keys() -> Iterator[tuple[str, str]]:
    lines = [f"MIIE{b62(60)}", b62(64), b62(64)]
    for kind in ("RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED "):
        for join in ("\n", "\r\n", " ", r"\n", "\n    "):
            for until in (80, 120, 200):
                yield (
                    join.join([f"-----BEGIN {kind}PRIVATE KEY-----", *lines])[:until],
                    lines[0][:8],
                )
