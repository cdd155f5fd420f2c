"""The expected effects of command lines, compared with the real effects of shell and git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from session_memory.common.text.shell_effects import MOVED, effects_of

CWD = "/srv/app"


def effects(command: str, cwd: str = CWD) -> list[tuple[str, ...]]:
    found = [
        effect
        for effect in effects_of(command, cwd)
        if effect.kind == "git" or not effect.is_doubtful
    ]
    return [(effect.kind, effect.path.removeprefix(f"{CWD}/"), *effect.words) for effect in found]


@pytest.mark.parametrize(
    ("command", "doubtful"),
    [
        ("grep -q a x.py || echo a >> x.py", [True]),
        ("grep -q a x.py && sed -i s/a/b/ x.py && touch y.py; touch z.py", [True, True, False]),
        ("[ -f x.py ] && rm x.py", [True]),
        ("make && touch x.py", [False]),
        ("bash -c 'test -f x.py && rm x.py'; touch y.py", [True, False]),
        ("false && bash -c 'rm x.py'", [True]),
    ],
)
def test_what_depends_on_another_command_is_doubtful(command: str, doubtful: list[bool]) -> None:
    assert [effect.is_doubtful for effect in effects_of(command, CWD)] == doubtful


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("sed -i 's/a/b/' x.py y.py", ["x.py", "y.py"]),
        ("sed -i.bak -e s/a/b/ -e s/c/d/ x.py", ["x.py"]),
        ("sed -i '' 's/a/b/' x.py", ["x.py"]),
        ("sed -Ei 's/(a)/b/' x.py", ["x.py"]),
        ("sed --in-place=.bak --expression=s/a/b/ x.py", ["x.py"]),
        ("sed -n 's/a/b/p' x.py", []),
        ("perl -pi -e 's/a/b/' x.py", ["x.py"]),
        ("perl -i -pe 's/a/b/' x.py", ["x.py"]),
        ("perl -0777 -pi -e 's/a/b/' 'x y.py'", ["x y.py"]),
        ("perl -ne 'print' x.py", []),
        ("echo hi > x.py", ["x.py"]),
        ("echo hi >>sub/x.py 2>&1", ["sub/x.py"]),
        ("make 2>err.log >/dev/null", ["err.log"]),
        ("make &> all.log", ["all.log"]),
        ("cat x.py | tee -a y.py z.py | wc -l", ["y.py", "z.py"]),
        ("cat > x.py <<'EOF'\nsed -i s/a/b/ no.py\n> no2.py\nEOF\necho > y.py", ["x.py", "y.py"]),
        ("cat <<-EOF > x.py\n\techo > no.py\n\tEOF\ntouch y.py", ["x.py", "y.py"]),
        ("echo \"$(cat <<'EOF'\nDon't\nEOF\n)\" && sed -i s/a/b/ x.py", ["x.py"]),
        ("cp a.py x.py", ["x.py"]),
        ("cp a.py b.py lib/", ["lib/a.py", "lib/b.py"]),
        ("cp -r a lib", []),
        ("cd sub && echo > x.py", ["sub/x.py"]),
        ("(cd sub && echo > x.py); echo > y.py", ["sub/x.py", "y.py"]),
        ("cd sub || exit 1; echo > x.py", ["sub/x.py"]),
        ("cd ../lib; sed -i s/a/b/ ./x.py", ["/srv/lib/x.py"]),
        ('cd "$DIR" && echo > x.py && echo > /tmp/y.py', ["/tmp/y.py"]),
        ("cd && echo > x.py", []),
        (
            'echo > "$x"; echo > ${x}.py; echo > $(date).py; echo > *.py; echo > {a,b}.py; echo > ~/x',
            [],
        ),
        ("for f in *.py; do sed -i s/a/b/ $f; done", []),
        ("for f in *.py; do sed -i s/a/b/ $f; done; sed -i s/a/b/ x.py", ["x.py"]),
        ("if grep -q a x.py; then sed -i s/a/b/ x.py; fi", ["x.py"]),
        ("grep -q a x.py || echo a >> x.py", []),
        ("grep -q a x.py || true; echo a >> y.py", ["y.py"]),
        ("sudo -n env A=b sed -i s/a/b/ x.py", ["x.py"]),
        ("bash -c 'cd sub && echo > x.py'", ["sub/x.py"]),
        ("echo 'a > b' \"c > d\" e\\>f # > g", []),
        ("python - <<'PY'\nopen('x','w')\nPY", []),
        ("diff <(sort a) <(sort b)", []),
        ("[ 3 -gt 2 ] && test a '>' b", []),
        ("touch x.py", ["x.py"]),
        ("patch -p1 < fix.diff", []),
        ("patch x.py fix.diff", ["x.py"]),
        ("echo hi 1> x.py", ["x.py"]),
        ("echo hi >| x.py", ["x.py"]),
        ("echo $((3 > 2)) a", []),
        ("find . -name '*.py' -exec sed -i s/a/b/ {} \\;", []),
        ("ls | xargs sed -i s/a/b/", []),
    ],
)
def test_the_files_that_a_command_edits_are_found_where_they_show(command, paths):
    assert effects(command) == [("edit", path) for path in paths]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("mv a.py b.py", [("remove", "a.py"), ("edit", "b.py")]),
        ("mv -t lib a.py", [("remove", "a.py"), ("edit", "lib/a.py")]),
        ("ln -sf a.py x.py", [("edit", "x.py")]),
        ("ln -s ../a.py sub/", [("edit", "sub/a.py")]),
        ("ln -s ../a.py", []),
        ("rm -rf build x.py", [("remove", "build"), ("remove", "x.py")]),
        ("rm -- -x", [("remove", "-x")]),
        ("git mv a.py b.py", [("remove", "a.py"), ("edit", "b.py")]),
        ("git rm -q a.py", [("remove", "a.py")]),
        ("git rm --cached a.py", [("git", CWD, "rm", "--cached", "a.py")]),
        ("rm *.py", []),
    ],
)
def test_files_that_are_removed_or_moved_are_told_from_edited_ones(command, found):
    assert [one[:2] if one[2:] == MOVED else one for one in effects(command)] == found


def test_what_was_moved_there_is_told_from_what_was_written():
    assert effects("mv a.py b.py; cp c.py d.py; git mv e.py sub/") == [
        ("remove", "a.py"),
        ("edit", "b.py", "mv"),
        ("edit", "d.py"),
        ("remove", "e.py"),
        ("edit", "sub/e.py", "mv"),
    ]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("git switch fix/x", [(CWD, "switch", "fix/x")]),
        ("git -C sub checkout -- x.py", [("sub", "checkout", "--", "x.py")]),
        ("cd sub && git stash -u", [("sub", "stash", "-u")]),
        (
            "git -c user.name=x --no-pager commit -am 'a; git stash'",
            [(CWD, "commit", "-am", "a; git stash")],
        ),
        (
            "git add -A && git commit -m \"$(cat <<'EOF'\nhi\nEOF\n)\"",
            [(CWD, "add", "-A"), (CWD, "commit", "-m", "")],
        ),
        ("git switch a || git switch -c a", [(CWD, "switch", "a"), (CWD, "switch", "-c", "a")]),
        ("git --git-dir=/x/.git reset --hard", []),
        ("cd $X && git stash", []),
        ("/usr/bin/git status", [(CWD, "status")]),
        ("echo git stash; grep 'git stash' x", []),
    ],
)
def test_git_commands_are_found_with_their_directory(command, found):
    assert effects(command) == [("git", *one) for one in found]


def test_without_a_directory_only_absolute_paths_are_known():
    assert effects("echo > x; echo > /tmp/y; git stash", "") == [("edit", "/tmp/y")]


@pytest.mark.parametrize(
    "command",
    ["echo 'open", 'echo "open', "echo $(open", "cat <<EOF\nno end", "a \\", ">", "((", ")", "`"],
)
def test_a_line_that_is_not_complete_does_no_harm(command):
    assert effects(command) == []


@pytest.mark.parametrize(
    "command",
    [
        "sed -i s/1/2/ a b",
        "sed -i -e s/1/2/ -e s/2/3/ a",
        "echo 2 > a; echo 3 >> b",
        "cat a | tee c d >e",
        "mv a c; cp b a",
        "mkdir s && cd s && echo > a && cd .. && rm b",
        "(mkdir s; cd s; echo > a); echo > c",
        "cat > c <<'X' && rm a\nrm b\nX",
        "perl -pi -e 's/1/2/' a",
        "bash -c 'echo 9 > a'; if true; then rm b; fi",
        "echo 'x > y' > 'c d'; echo \"> q\" >\"e f\"",
        "mkdir s; cp a b s/; mv a b s",
    ],
)
def test_a_real_shell_does_just_that(command, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    for name in "ab":
        (root / name).write_text(f"1 {name}\n")
    before = contents(root)
    subprocess.run(["bash", "-c", command], cwd=root, check=True, capture_output=True)
    after = contents(root)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert {
        str(Path(effect.path).relative_to(root)) for effect in effects_of(command, str(root))
    } == changed


def contents(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()
    }


def test_no_regular_expressions_are_loaded():
    import sys

    code = "import sys; sys.path.insert(0, sys.argv[1]); import session_memory.common.text.shell_effects; print('re' in sys.modules)"
    root = str(Path(__file__).resolve().parents[3])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, root], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


# Each is a whole command line, behind which the shell runs more.
QUOTING = {
    "an apostrophe in a here-document in a substitution": "true -m \"$(cat <<'EOF'\nDon't break it\nEOF\n)\"",
    "two apostrophes there": "true -m \"$(cat <<'EOF'\nDon't, it's (odd\nEOF\n)\"",
    "an unquoted here-document there": 'true -m "$(cat <<EOF\nDon\'t say "no\nEOF\n)"',
    "a parenthesis there": "true -m \"$(cat <<'EOF'\n1) one\n2) two :-) \nEOF\n)\"",
    "a backquote there": "true -m \"$(cat <<'EOF'\nuse `it\nEOF\n)\"",
    "an indented here-document there": "true -m \"$(cat <<-'EOF'\n\tDon't\n\tEOF\n)\"",
    "a delimiter in double quotes": 'true -m "$(cat <<"EOF"\nDon\'t\nEOF\n)"',
    "a delimiter behind a backslash": 'true -m "$(cat <<\\EOF\nDon\'t\nEOF\n)"',
    "two here-documents there": "true -m \"$(cat <<'A' - <<'B'\nDon't\nA\nit's\nB\n)\"",
    "a substitution outside of quotes": "true $(cat <<'EOF'\nDon't\nEOF\n)",
    "a substitution in a substitution": 'true "$(echo "$(cat <<\'EOF\'\nDon\'t\nEOF\n)" "it\'s")"',
    "a comment in a substitution": 'true "$(true # Don\'t )\n)"',
    "a pattern in a substitution": "true \"$(case x in x) echo 'a)';; (y) echo;; *) echo;; esac)\"",
    "two here-documents": "cat <<A - <<'B' >/dev/null\nDon't $(\nA\nit's\nB\ntrue",
    "a here-document behind a pipe": "cat <<'EOF' | cat >/dev/null\nDon't\nEOF\ntrue",
    "an indented here-document": "if true; then\n\tcat >/dev/null <<-EOF\n\tDon't\n\tEOF\nfi",
    "a here-document with an empty delimiter": "cat >/dev/null <<''\nDon't\n\ntrue",
    "a here-string": 'cat >/dev/null <<<"it\'s"',
    "a here-string without quotes": "cat >/dev/null <<<it\\'s",
    "a comment": "true # Don't\ntrue",
    "an escaped apostrophe": "echo don\\'t >/dev/null",
    "an apostrophe in $'...'": "echo $'it\\'s' >/dev/null",
    "translated text": 'echo $"it\'s" >/dev/null',
    "a default": "echo ${x:-it\\'s} \"${y:-'a }'}\" >/dev/null",
    "a length": 'true "${#x}" $#',
    "a shift": "(( x = 1 << 2 )) && true $(( 1 << 3 ))",
    "a case": "case x in x) true;; 'y)') false;; esac",
    "a case in a subshell": "(case x in x) true;; esac)",
    "a case in a loop": "for i in 1; do case $i in 1) true;; *) false;; esac; done",
    "two patterns": "case x in\n  a|x)\n    true\n    ;;\nesac",
    "backquotes": "true `echo \\`echo a\\``",
    "a comparison of processes": 'cat <(echo "it\'s") >/dev/null',
    "an array": "a=(it\\'s 'b c'); true",
    "a function": 'f() { echo "it\'s"; }; f >/dev/null',
    "a continued line": 'true \\\n  "it\'s"',
}


@pytest.mark.parametrize("name", QUOTING)
def test_a_command_behind_any_quoting_is_read_as_the_shell_reads_it(
    name: str, tmp_path: Path
) -> None:
    line = f"{QUOTING[name]} && sed -i 's/1/2/' a && echo 'it is done' > b"
    (tmp_path / "a").write_text("1\n")
    subprocess.run(["bash", "-c", line], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "a").read_text() == "2\n"
    assert [
        (effect.kind, effect.path) for effect in effects_of(line, "/w") if effect.path[:4] != "/dev"
    ] == [("edit", "/w/a"), ("edit", "/w/b")]
