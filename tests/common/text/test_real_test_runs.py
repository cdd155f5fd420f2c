"""Real test runners' output about passwords, tokens and keys has no secrets and is not redacted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from clients.npm import PERSON, NpmPlace, node_at

from session_memory.common.text.sanitize import plain
from session_memory.common.text.secrets.redaction import redact

PYTHON = """
import pytest

CASES = ["password2", "wrong password", "Token-v2", "expired key 3", "PASS", "a1b2c3d4e5f6", "seed-20240101"]

@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("token", ["key2", "refreshToken3", "sha256"])
def test_login(case, token):
    print("PASS: login", case, "for token", token, "in 28.8s")
    assert token != "sha256"

def test_password_is_hashed():
    assert {"password": "hashed", "token": None, "key": ["key3"]} == {"password": "hidden", "token": None, "key": []}

def test_key():
    {}["token_2"]

@pytest.mark.skip(reason="password2 is not set")
def test_skipped(): ...

@pytest.fixture
def client():
    raise RuntimeError("no API_KEY in the environment: set API_KEY=<key>")

def test_error(client): ...
"""
GO = """package app

import ("errors"; "fmt"; "testing")

type Token struct { Key string; Secret *string; Password string }

func TestLogin(t *testing.T) {
	for _, w := range []string{"password2", "wrong password", "Token-v2", "PASS", "key 3", "key 3", "9f8a7b6c5d4e"} {
		t.Run(w, func(t *testing.T) {
			fmt.Println("PASS: login", w, "with key2")
			if w == "Token-v2" { t.Errorf("password: got %q, want %q", "empty", "required") }
		})
	}
}
func TestKey3(t *testing.T) { t.Skip("no token: TOKEN_2 is not set") }
func TestPassword(t *testing.T) { t.Fatalf("token = %+v, want %#v", Token{Key: "key2"}, Token{"key3", nil, "hidden"}) }
func TestSecret(t *testing.T) { t.Error(errors.New("secret: unexpected status 401 for key2")) }
func FuzzToken(f *testing.F) { f.Add("key2"); f.Fuzz(func(t *testing.T, s string) {}) }
func ExampleToken() {
	fmt.Println("password: hidden")
	// Output: password: required
}
"""
RUST = """
#[derive(Debug, PartialEq)]
pub struct Token { pub key: String, pub secret: Option<String>, pub password: &'static str }
#[cfg(test)]
mod password {
    use super::Token;
    fn token(key: &str) -> Token { Token { key: key.into(), secret: None, password: "hidden" } }
    #[test] fn hash_is_argon2() { println!("PASS: login wrong password with key2"); }
    #[test] fn token_key_2_expires() { assert_eq!(token("key2"), token("key3")); }
    #[test] #[ignore = "secret: needs API_KEY"] fn secret_is_redacted() {}
    #[test] fn api_key_v2() { panic!("token: expired after {}h, password: not set", 24); }
    #[test] fn unwrap_secret() { Err::<(), _>("key: not found in ring 2").unwrap(); }
}
"""
JAVASCRIPT = """
const words = ['password2', 'wrong password', 'Token-v2', 'expired key 3', 'PASS'];
describe('login with a password', () => {
  test.each(words)('%s is accepted', (w) => { console.log('PASS: login', w, 'with key2'); expect(w).not.toBe('Token-v2'); });
  it('token is refreshed', () => { expect({ token: 'key2', password: 'hidden' }).toEqual({ token: 'key3', password: 'required' }); });
  it.skip('secret: rotated in v2', () => {});
  it.todo('password: reset by email');
  it('throws', () => { throw new Error('password: must have 8 characters, token: expired'); });
  it('key', () => { const token = undefined; token.key2; });
});
"""


def printed(command: list[str], directory: Path, **environ: str) -> str:
    environ = {"PATH": os.environ["PATH"], "HOME": str(directory), **environ}
    done = subprocess.run(
        command,
        cwd=directory,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    text = plain(done.stdout + done.stderr)
    assert "password" in text, text
    return text


def assert_nothing_is_redacted(text: str) -> None:
    in_json = json.dumps(text)
    texts = [text, in_json, json.dumps(in_json), *text.split("\n")]
    assert [(one, redact(one)) for one in texts if redact(one) != one] == []


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "options", ["-v", "-rA --durations=5", "-vv --tb=long -l", "-q --tb=short --color=yes"]
)
def test_pytest(tmp_path: Path, options: str) -> None:
    (tmp_path / "test_auth.py").write_text(PYTHON)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        *options.split(),
        "test_auth.py",
    ]
    assert_nothing_is_redacted(printed(command, tmp_path))


@pytest.mark.skipif(not shutil.which("go"), reason="there is no go")
@pytest.mark.parametrize("options", ["-v", "-v -json", "-v -bench=. -count=2", ""])
def test_go(tmp_path: Path, options: str) -> None:
    (tmp_path / "go.mod").write_text("module example.org/app\n\ngo 1.18\n")
    (tmp_path / "auth_test.go").write_text(GO)
    command = ["go", "test", *options.split(), "."]
    environ = {
        "GOPATH": str(tmp_path / "go"),
        "GOCACHE": str(PERSON / ".cache/go-build"),
        "GOPROXY": "off",
    }
    assert_nothing_is_redacted(printed(command, tmp_path, **environ))


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cargo"), reason="there is no cargo")
def test_cargo(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(PERSON)}
    if subprocess.run(
        ["cargo", "--version"], env=environ, capture_output=True, check=False
    ).returncode:
        pytest.skip("rustup has no toolchain for this person")
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "token-login"\nversion = "0.1.2"\nedition = "2021"\n'
    )
    (tmp_path / "src" / "lib.rs").write_text(RUST)
    for options in ("-v", "-- --nocapture", "-- --show-output", "-q"):
        command = ["cargo", "test", "--offline", *options.split()]
        assert_nothing_is_redacted(printed(command, tmp_path, HOME=str(PERSON)))


@pytest.mark.client
def test_jest(tmp_path: Path, npm_place: NpmPlace) -> None:
    place = npm_place("jest")
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "auth.test.js").write_text(JAVASCRIPT)
    for options in ("--ci --verbose", "--ci --coverage --colors", "--ci --json"):
        command = [
            node_at(place),
            str(place / "node_modules/jest/bin/jest.js"),
            f"--rootDir={tmp_path}",
            *options.split(),
        ]
        assert_nothing_is_redacted(printed(command, tmp_path))
