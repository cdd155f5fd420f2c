"""The bundle of a prompt's modules is loaded only if it fits the interpreter and the sources."""

from __future__ import annotations

import dis
import marshal
import os
import shutil
import subprocess
import sys
import time
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import pytest
from hooks_scene import ROOT, PlainUser, told
from records import assistant, exchange, user, write

from session_memory.awareness.events.bundle import HEAD_BYTES

WORDS = "A record of your other sessions"
OTHER_WORDS = "B record of your other sessions"


class Program:
    """A copy of the program whose sources say WORDS, with a bundle that says OTHER_WORDS: one sees
    which is loaded."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bundle = root / "prompt.bundle"

    def build(self) -> None:
        for part in ("session_memory", "hooks"):
            shutil.copytree(
                ROOT / part, self.root / part, ignore=shutil.ignore_patterns("__pycache__")
            )
        self._say(OTHER_WORDS)
        self.make_bundle()
        self._say(WORDS)

    def make_bundle(self) -> None:
        program = "import sys; sys.path.insert(0, sys.argv[1]); from session_memory.awareness.events.bundle import write_bundle"
        command = [
            sys.executable,
            "-I",
            "-S",
            "-B",
            "-c",
            f"{program}; write_bundle(sys.argv[1])",
            str(self.root),
        ]
        subprocess.run(command, check=True)

    def touch(self, module: str, seconds: float) -> None:
        """Sets when a source was written."""
        os.utime(self.root / "session_memory" / module, (seconds, seconds))

    def words_told(self, user: PlainUser, script: str = "user_prompt_submit", **fields: str) -> str:
        """How the hook introduces what it tells."""
        user.session(*exchange("hello", "hi"))
        return told(user.run(script, program=self.root, **fields)).partition(",")[0]

    def _say(self, words: str) -> None:
        source = self.root / "session_memory" / "sessions" / "transcripts" / "entries.py"
        text = source.read_text()
        assert (WORDS in text) != (OTHER_WORDS in text)
        source.write_text(text.replace(WORDS, words).replace(OTHER_WORDS, words))
        self.touch("sessions/transcripts/entries.py", 1_700_000_000)


def groups_of(program: Program) -> tuple[tuple[int, int, tuple[tuple[str, ...], ...]], ...]:
    """The offset, the length and the modules of each group in the bundle."""
    head = program.bundle.read_bytes()[len(MAGIC_NUMBER) : HEAD_BYTES]
    return marshal.loads(head)[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Program:
    program = Program(tmp_path_factory.mktemp("built") / "app")
    program.build()
    return program


@pytest.fixture
def program(tmp_path: Path, built: Program) -> Program:
    shutil.copytree(built.root, tmp_path / "app")
    return Program(tmp_path / "app")


def test_a_prompt_loads_the_bundle(built, plain):
    assert built.words_told(plain) == OTHER_WORDS


def test_all_that_a_prompt_loads_of_ours_is_in_the_bundle(built, plain):
    plain.session(*exchange("hello", "hi"))
    for directory in list(built.root.rglob("__pycache__")):
        shutil.rmtree(directory)
    plain.run(program=built.root)
    assert list((built.root / "session_memory").rglob("*.pyc")) == []


def test_so_is_all_that_a_start_of_a_session_loads(built, plain):
    (plain.root / ".session-memory").mkdir(exist_ok=True)
    (plain.root / ".session-memory" / "config.yaml").write_text("upkeep: off\n")
    plain.run("session_start", program=built.root, hook_event_name="SessionStart", source="startup")
    for directory in list(built.root.rglob("__pycache__")):
        shutil.rmtree(directory)
    plain.run("session_start", program=built.root, hook_event_name="SessionStart", source="startup")
    assert list((built.root / "session_memory").rglob("*.pyc")) == []


def test_what_finds_collisions_is_in_the_bundle_too(built, plain):
    for directory in list(built.root.rglob("__pycache__")):
        shutil.rmtree(directory)
    file = plain.root / "app.py"
    edit = assistant(("Edit", {"file_path": str(file)}), at=time.time() - 600)
    write(plain.project_dir / f"{plain.session_id}.jsonl", user("go on"), edit)
    stash = ("Bash", {"command": "git stash"})
    plain.session(
        user("go on"), assistant(("Edit", {"file_path": str(file)}), stash, at=time.time() - 300)
    )
    file.touch()
    assert "! " in told(plain.run(program=built.root))
    assert list((built.root / "session_memory").rglob("*.pyc")) == []


def test_what_a_module_computes_for_every_prompt_is_in_the_bundle_computed(program, plain):
    (program.root / "session_memory" / "common" / "text" / "secrets" / "rules.tsv").unlink()
    plain.session(*exchange("log in with password: hunter2x and ghp_" + "aB3dE6gH9j" * 4, "hi"))
    text = told(plain.run(program=program.root))
    assert "[redacted: password]" in text
    assert "aB3dE6gH9j" not in text


def test_the_bundle_is_for_its_user_alone(built):
    assert built.bundle.stat().st_mode & 0o777 == 0o600


def test_a_program_without_a_bundle_runs_from_its_sources(program, plain):
    program.bundle.unlink()
    assert program.words_told(plain) == WORDS


def test_a_bundle_of_another_interpreter_is_not_loaded(program, plain):
    content = program.bundle.read_bytes()
    assert content.startswith(MAGIC_NUMBER)
    program.bundle.write_bytes(b"\x01\x02\r\n" + content[len(MAGIC_NUMBER) :])
    assert program.words_told(plain) == WORDS


def test_what_was_written_to_is_loaded_from_its_source(program, plain):
    program.touch("sessions/transcripts/entries.py", 1_700_000_001)
    assert program.words_told(plain) == WORDS


@pytest.mark.parametrize(
    "module",
    ["awareness/events/prompt.py", "common/text/format.py", "sessions/runtimes/claude/__init__.py"],
)
def test_what_was_not_written_to_is_loaded_from_the_bundle_all_the_same(program, plain, module):
    for directory in list(program.root.rglob("__pycache__")):
        shutil.rmtree(directory)
    program.touch(module, 1_700_000_001)
    assert program.words_told(plain) == OTHER_WORDS
    compiled = [
        path.name.partition(".")[0] for path in (program.root / "session_memory").rglob("*.pyc")
    ]
    assert compiled == [Path(module).stem]


def test_what_has_another_size_is_loaded_from_its_source(program, plain):
    module = program.root / "session_memory" / "sessions" / "transcripts" / "entries.py"
    written = module.stat().st_mtime_ns
    module.write_text(module.read_text() + "\n")
    os.utime(module, ns=(written, written))
    assert program.words_told(plain) == WORDS


@pytest.mark.sample(2)
@pytest.mark.parametrize("length", [0, 2, 100, HEAD_BYTES, -1])
def test_a_bundle_that_is_cut_off_is_not_loaded(program, plain, length):
    program.bundle.write_bytes(program.bundle.read_bytes()[:length])
    assert program.words_told(plain) == WORDS


def test_what_redacts_a_secret_is_in_the_bundle(built, plain):
    plain.session(*exchange("log in with password: hunter2x", "hi"))
    for directory in list(built.root.rglob("__pycache__")):
        shutil.rmtree(directory)
    assert "[redacted: password]" in told(plain.run(program=built.root))
    assert list((built.root / "session_memory").rglob("*.pyc")) == []


def test_regexes_are_not_loaded_with_what_reads_an_assignment(built):
    groups = [{module[0].rpartition(".")[2] for module in group[2]} for group in groups_of(built)]
    assert [group for group in groups if "assignments" in group] == [{"assignments"}]


def test_a_runtime_is_loaded_with_no_module_that_others_import(built):
    groups = groups_of(built)
    for _, _, modules in groups:
        names = [module[0].removeprefix("session_memory.") for module in modules]
        for runtime in ("pi", "codex", "qwen", "copilot", "opencode", "kilo", "gemini", "atif"):
            if any(f"{name}.".startswith(f"sessions.runtimes.{runtime}.") for name in names):
                # a fork of a runtime is loaded with it
                others = [name for name in names if not name.startswith("sessions.runtimes.")]
                assert others in ([], ["common.system.quick_sqlite"])  # some have a database


def test_notes_of_refs_are_a_group_of_their_own_since_only_a_repository_has_some(built):
    groups = [[module[0] for module in modules] for _, _, modules in groups_of(built)]
    notes = "session_memory.awareness.activity.collisions.ref_notes"
    assert [group for group in groups if notes in group] == [
        ["session_memory.common.system.git_refs", notes]
    ]


def test_imports_for_types_are_left_out(built):
    content = built.bundle.read_bytes()
    for at, length, modules in groups_of(built):
        for module, code in zip(modules, marshal.loads(content[at : at + length])):
            assert "collections.abc" not in code.co_names, module


def test_no_import_is_relative_because_each_such_import_would_have_to_be_resolved(built):
    content = built.bundle.read_bytes()
    codes = [
        code
        for at, length, _ in groups_of(built)
        for code in marshal.loads(content[at : at + length])
    ]
    levels = []
    while codes:
        code = codes.pop()
        codes += [constant for constant in code.co_consts if isinstance(constant, type(code))]
        steps = [*dis.get_instructions(code)]
        levels += [
            steps[at - 2].argval for at, step in enumerate(steps) if step.opname == "IMPORT_NAME"
        ]
    assert len(levels) > 100
    assert set(levels) == {0}


def test_a_module_comes_behind_what_it_imports_and_what_nothing_new_needs_before_what_tells(built):
    groups = groups_of(built)
    order = [module[0].removeprefix("session_memory.") for group in groups for module in group[2]]
    assert (
        order.index("awareness.events")
        < order.index("common.errors")
        < order.index("awareness.events.context")
        < order.index("awareness.events.main")
    )
    telling = next(
        index
        for index, group in enumerate(groups)
        if "awareness.activity._new_entries" in str(group)
    )
    for name in (
        "awareness.events.tool_call",
        *[f"sessions.runtimes.{one}" for one in ("claude", "pi", "codex", "opencode", "gemini")],
    ):
        assert next(index for index, group in enumerate(groups) if name in str(group)) < telling


def test_the_prompt_of_pi_loads_the_bundle_too(built, plain):
    assert built.words_told(plain, "pi_prompt", runtime="agent-sdk") == OTHER_WORDS
