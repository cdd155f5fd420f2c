"""Files that a command writes without naming them: by a script, variable, glob or another program."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from collision_scene import Pair, collisions

from bench.clones import Actor, Clone

EDITED = '! src/app.py: edited just now by "telegram", after you read it'
DURING = '! src/app.py: changed just now during a command of "discord", after you read it'
PATCH = "--- a/src/app.py\n+++ b/src/app.py\n@@ -1 +1 @@\n-src/app.py\n+x\n"
WRITES = {
    "a Python script": "python3 - <<'EOF'\nopen('src/app.py', 'w').write('x')\nEOF",
    "a script with parts of the path": "python3 - <<'EOF'\nfrom pathlib import Path\n(Path('src') / 'app.py').write_text('x')\nEOF",
    "a line of Python": "python3 -c \"open('src/app.py', 'w').write('x')\"",
    "a shell script": "bash <<'EOF'\nsed -i s/app/x/ src/app.py\nEOF",
    "eval": "eval 'echo x > src/app.py'",
    "git apply": f"git apply <<'EOF'\n{PATCH}EOF",
    "patch": f"patch -p1 <<'EOF'\n{PATCH}EOF",
    "dd": "dd if=docs/guide.md of=src/app.py status=none",
    "a copy into a directory": "mkdir ../new && cp docs/guide.md ../new/app.py && cp ../new/app.py src",
    "truncate": "truncate -s 0 src/app.py",
    "a time limit": "timeout 9 sed -i s/app/x/ src/app.py",
    "ed": 'printf \'%s\\n\' 1c x . w q | python3 -c \'open("src/app.py", "w").write("x")\'',
    "a variable": 'F=src/app.py; echo x > "$F"',
    "a variable of the shell": 'echo x > "$PWD/src/app.py"',
    "a loop": "for f in src/app.py src/db.py; do sed -i s/p/x/ $f; done",
    "a glob": "sed -i s/p/x/ src/*.py",
    "find": "find src -name '*.py' -exec sed -i s/p/x/ {} +",
    "xargs": "grep -rl app src | xargs sed -i s/app/x/",
}
READS = {
    "looks": "cat src/app.py | head; grep -n x src/app.py; ls src/*.py; sleep 1",
    "another file of the name": "mkdir ../new; python3 -c \"open('../new/app.py', 'w').write('x')\"",
    "another rewriter": "sed -i s/p/x/ docs/guide.md",
    "an output that is dropped": "grep x src/app.py > /dev/null",
}


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    pair = Pair(Clone(tmp_path))
    pair.main.read("src/app.py")
    return pair


def written_meanwhile(actor: Actor, command: str, name: str = "src/app.py") -> None:
    """A person writes a file while a command runs."""
    path = actor.clone.root / name

    def work() -> int:
        actor.clone.write(path, "a person's\n")
        return 0

    actor._call("Bash", {"command": command}, work)


@pytest.mark.parametrize("way", WRITES)
def test_a_file_that_a_command_writes_is_told(pair: Pair, way: str) -> None:
    assert pair.discord.bash(WRITES[way]) == 0
    assert DURING in pair.main.before_edit("src/app.py")
    assert collisions(pair.main.prompt()) == []


@pytest.mark.sample(3)
@pytest.mark.parametrize("way", WRITES)
def test_it_is_told_among_eight_others(pair: Pair, way: str) -> None:
    others = [pair.clone.session(f"busy-{at}") for at in range(8)]
    while pair.main.prompt():
        pass
    assert pair.discord.bash(WRITES[way]) == 0
    for other in others:
        other.say("And now?")
        other.read("docs/guide.md")
    assert [line for line in collisions(pair.main.prompt()) if "src/app.py" in line]


@pytest.mark.parametrize("way", READS)
def test_a_file_that_a_command_leaves_alone_is_not_told(pair: Pair, way: str) -> None:
    pair.discord.bash(READS[way])
    assert collisions(pair.main.prompt()) == []


@pytest.mark.parametrize(
    "command", ["cat src/app.py", "npm test", "sleep 9", "git diff src/app.py"]
)
def test_what_a_person_writes_while_a_command_runs_that_only_reads_or_names_no_file_is_not_given_to_it(
    pair: Pair, command: str
) -> None:
    written_meanwhile(pair.discord, command)
    assert collisions(pair.main.prompt()) == []


def test_what_a_command_of_this_session_may_have_written_is_not_given_to_another(
    pair: Pair,
) -> None:
    own = pair.clone.now
    pair.main.bash("python3 -c \"open('src/app.py', 'w').write('x')\"")
    pair.clone.now = own
    pair.discord.bash("true src/app.py")
    assert collisions(pair.main.prompt()) == []


@pytest.mark.parametrize(
    "command", ["ln -sf ../docs/guide.md src/app.py", "ln -f docs/guide.md src/app.py"]
)
def test_a_link_in_the_place_of_a_file_is_an_edit(pair: Pair, command: str) -> None:
    assert pair.discord.bash(command) == 0
    assert collisions(pair.main.prompt()) == [EDITED.replace("telegram", "discord")]


def test_an_edit_by_a_tool_explains_the_time_of_the_file(pair: Pair) -> None:
    telegram = pair.clone.session("telegram")
    pair.main.prompt()
    began = pair.clone.now
    telegram.edit("src/app.py", "x\n")
    pair.clone.now = began
    pair.discord.bash("python3 -m unittest src/app.py || true")
    os.utime(pair.clone.root / "src/app.py", (began + 0.5, began + 0.5))
    (line,) = collisions(pair.main.prompt())
    assert line == EDITED


def test_an_edit_that_was_told_before_explains_the_time_of_the_file(pair: Pair) -> None:
    telegram = pair.clone.session("telegram")
    pair.main.prompt()
    began = pair.clone.now
    telegram.edit("src/app.py", "x\n")
    assert collisions(pair.main.prompt()) == [EDITED]
    pair.clone.now = began
    pair.discord.bash("sed -i s/p/x/ docs/*.md")
    os.utime(pair.clone.root / "src/app.py", (began + 0.5, began + 0.5))
    pair.later()
    assert collisions(pair.main.prompt()) == []


def test_a_sub_agent_that_writes_by_a_script_is_told(pair: Pair) -> None:
    pair.discord.sub_agent().bash(WRITES["a Python script"])
    assert collisions(pair.main.prompt()) == [DURING]


def test_a_long_command_takes_little_time(pair: Pair) -> None:
    pair.discord.open_call(
        "Bash", {"command": "python3 - <<'EOF'\n" + "a/b.py " * 200_000 + "\nEOF"}, "toolu_long"
    )
    began = time.process_time()
    pair.main.prompt()
    assert time.process_time() - began < 5
