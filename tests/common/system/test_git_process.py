"""Git runs no program that a repository names.

This is tried for every argument list in the package, with every key of git's settings, in every
file where a repository can put it.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import share
from checkpoint_branch import BRANCH
from git_scene import GIT_ENVIRONMENT, git, repository
from records import assistant, user
from repository_scene import LINE, REQUEST, Work
from source_trees import tree_of

from session_memory.common.system import git_process
from session_memory.common.system.git import find_worktree
from session_memory.common.system.git_directories import PREFIX
from session_memory.common.system.git_objects import GitObjects
from session_memory.common.system.git_process import (
    GitUnavailableError,
    PersonPlace,
    RepositoryPlace,
    TrialPlace,
    ask_git,
    refusal_of_git,
    run,
)
from session_memory.history.git.branches import Branches
from session_memory.history.git.commits import Repository
from session_memory.history.git.merges import Merges
from session_memory.memory.doubts import with_doubts
from session_memory.memory.memory_index import IndexedMemory, Origin

PACKAGE = Path(git_process.__file__).parent.parent
STARTERS = (
    "run",
    "Popen",
    "call",
    "check_call",
    "check_output",
    "create_subprocess_exec",
    "system",
    "popen",
)
STARTERS_OF_OS = (
    "posix_spawn",
    "posix_spawnp",
    "execv",
    "execve",
    "execvp",
    "execvpe",
    "spawnv",
    "spawnvp",
)


def starts_of_git(path: Path) -> Iterator[str]:
    """The places of a module where a process is started by the name of git."""
    source = path.read_text()
    for node in ast.walk(tree_of(source)) if "git" in source else ():
        if isinstance(node, ast.Call):
            called = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            if called in (*STARTERS, *STARTERS_OF_OS):
                words = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
                if any(isinstance(word, str) and word.split(" ")[0] == "git" for word in words):
                    yield f"{path}:{node.lineno}"
        elif isinstance(node, (ast.List, ast.Tuple)) and node.elts and "subprocess" in source:
            first = node.elts[0]
            if isinstance(first, ast.Constant) and first.value == "git":
                yield f"{path}:{node.lineno}"


def test_no_other_module_starts_git() -> None:
    places = [place for path in PACKAGE.rglob("*.py") for place in starts_of_git(path)]
    places += [
        place for path in (PACKAGE.parent / "hooks").rglob("*.py") for place in starts_of_git(path)
    ]
    assert places == []  # git_process itself starts the program that it found


def test_git_is_started_by_two_functions_that_share_a_command_line() -> None:
    tree = tree_of(Path(git_process.__file__).read_text())
    starting = [
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr in (*STARTERS_OF_OS, "run")
    ]
    assert starting == ["run", "start"]


class Scene:
    """A repository with all that the package asks git about: two worktrees with live sessions,
    renames, a submodule, staged and uncommitted files, a signed commit, checkpoints, a branch that
    was merged after a rebase."""

    def __init__(self, root: Path) -> None:
        self.work = Work(root)
        (self.work.user.home / ".gitconfig").write_text(
            "[user]\n\tname = A\n\temail = a@example.com\n"
        )
        self.root, self.fix, self.marker = self.work.root, root / "fix", root / "ran"
        self.program = root / "program"
        self.program.write_text(f"#!/bin/sh\ntouch {self.marker}\n")
        self.program.chmod(0o755)
        module = repository(root / "module", code="1\n")
        git(self.root, "submodule", "add", "-q", str(module), "lib")
        (self.root / ".gitattributes").write_text(
            "* diff=m filter=m\ncart.py merge=union\nlog -filter\n"
        )
        (self.root / "filtered").write_text("1\n")
        (self.root / "log").write_text("1\n2\n3\n")
        self.work.commit("Add the library")
        git(self.root, "worktree", "add", "-q", "-b", "fix", str(self.fix))
        git(self.root, "worktree", "add", "-q", "-b", "old", str(root / "old"))
        self.work.session(
            "tax", self.work.said(REQUEST, "tax"), self.work.edit("tax", f"price = 1\n{LINE}")
        )
        edit = {"file_path": f"{self.fix}/log", "old_string": "2", "new_string": "5"}
        fields = {"sessionId": "fix", "cwd": str(self.fix), "at": self.work.began}
        self.work.session(
            "fix", user("change the log", **fields), assistant(("Edit", edit), **fields)
        )
        self.work.write(f"price = 1\n{LINE}\n")
        for name in ("log", "filtered"):
            (self.root / name).write_text("1\n4\n3\n")
        git(self.root / "lib", "commit", "-q", "--allow-empty", "-m", "next")
        self.commit = self.work.commit()
        signed = git(self.root, "cat-file", "commit", "HEAD").replace(
            "\n\n",
            "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----\n\n",
            1,
        )
        name = (
            subprocess.run(
                ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
                cwd=self.root,
                input=f"{signed}\n".encode(),
                capture_output=True,
                check=True,
                env=GIT_ENVIRONMENT,
            )
            .stdout.decode()
            .strip()
        )
        git(self.root, "update-ref", "HEAD", name)
        self.commit = name
        for name in ("log", "filtered"):
            (self.fix / name).write_text("1\n5\n3\n")
        (root / "old/new").write_text("new\n")
        git(root / "old", "add", "-A")
        git(root / "old", "commit", "-q", "-m", "New")
        self.work.write(f"price = 1\n{LINE}\nstaged = 1\n")
        git(self.root, "add", "cart.py")
        self._checkpoints()
        self._traps()

    def _traps(self) -> None:
        """Puts hooks and attributes beside the settings."""
        common = self.root / ".git"
        for hooks in (
            common / "hooks",
            common / "modules/lib/hooks",
            common / "worktrees/fix/hooks",
        ):
            hooks.mkdir(exist_ok=True)
            for name in HOOKS:
                (hooks / name).symlink_to(self.program)
        (common / "info").mkdir(exist_ok=True)
        (common / "info/attributes").write_text(
            "* diff=m filter=m\nfiltered merge=m\nlog -filter\n"
        )

    def _checkpoints(self) -> None:
        git(self.root, "branch", BRANCH)
        record = (
            json.dumps(user("from a checkpoint", sessionId="kept", cwd="/elsewhere")).encode()
            + b"\n"
        )
        metadata = json.dumps(
            {"session_id": "kept", "agent": "Claude Code", "created_at": "2026-01-01T00:00:00Z"}
        )
        lines = ""
        for name, content in (("full.jsonl", record), ("metadata.json", metadata.encode())):
            blob = subprocess.run(
                ["git", "hash-object", "-w", "--stdin"],
                cwd=self.root,
                input=content,
                capture_output=True,
                check=True,
            )
            lines += f"100644 blob {blob.stdout.decode().strip()}\t{name}\n"
        for path in ("0", "b2c4d5e6f7", "a3"):
            tree = subprocess.run(
                ["git", "mktree"],
                cwd=self.root,
                input=lines.encode(),
                capture_output=True,
                check=True,
            )
            lines = f"040000 tree {tree.stdout.decode().strip()}\t{path}\n"
        tree = subprocess.run(
            ["git", "mktree"], cwd=self.root, input=lines.encode(), capture_output=True, check=True
        )
        commit = git(self.root, "commit-tree", tree.stdout.decode().strip(), "-m", "Checkpoint")
        git(self.root, "update-ref", f"refs/heads/{BRANCH}", commit)

    def drive(self) -> list[str]:
        """What everything prints that asks git."""
        run_of = self.work.user.run
        outputs = [
            run_of(*words, cwd=self.root).stdout
            for words in (
                ("why", "cart.py:2"),
                ("why", self.commit),
                ("why", "--staged"),
                ("search", self.commit[:12]),
                ("conflicts",),
                ("rescue", "--unknown"),
                ("ingest", "--checkpoints", "."),
                ("handoff",),
                ("memories",),
            )
        ]
        origin = Origin(
            int((time.time() - 9 * 3600) * 1000), "session", 1, "extractive", 3, str(self.root)
        )
        memory = IndexedMemory(
            "",
            "x.md",
            "aaaaaaaaaa",
            "solution",
            "passed after `log` and `gone.py`",
            origins=(origin,),
        )
        outputs += [str(one.doubts) for one in with_doubts([memory], "/nobody")]
        outputs.append(str(Branches().is_merged(str(self.root), "old")))
        worktree = find_worktree(str(self.root))
        assert worktree
        outputs.append(str(GitObjects(worktree.common_dir).at(self.commit, "log")))
        outputs.append(str(Repository(worktree.git_dir, worktree.root).is_unmerged("log")))
        return outputs

    def drive_with_all_settings(self) -> list[str]:
        """The same of what needs the person's settings, and those of the repository."""
        done = self.work.user.run("why", self.commit, "--notes", "--yes", cwd=self.root)
        return [done.stdout + done.stderr, refusal_of_git(str(self.root))]

    def trap(self, keys: dict[str, str], *, first: str = "") -> None:
        """Puts these settings into every file where the repository can have them."""
        text = first + "".join(setting(key, value) for key, value in keys.items())
        for path, begin in self.plain.items():
            path.write_text(begin + text)

    @property
    def plain(self) -> dict[Path, str]:
        """The files of settings, and how they begin."""
        common = self.root / ".git"
        usual = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tworktreeConfig = true\n"
        module = f"[core]\n\trepositoryformatversion = 0\n\tworktree = {self.root}/lib\n"
        return {
            common / "config": usual,
            common / "config.worktree": "",
            common / "worktrees/fix/config.worktree": "",
            common / "modules/lib/config": module,
        }


HOOKS = (
    "post-index-change",
    "reference-transaction",
    "pre-auto-gc",
    "post-checkout",
    "pre-commit",
    "commit-msg",
    "post-commit",
    "post-merge",
    "fsmonitor-watchman",
    "post-rewrite",
    "pre-push",
    "prepare-commit-msg",
)
Call = tuple[str, tuple[str, ...]]  # the place where git works, and its arguments
STORED = (
    "core.repositoryformatversion",
    "core.sharedrepository",
    "core.bare",
    "extensions.",
)  # how it is: see the next tests
NAMES = {"remote": "origin", "branch": "main", "submodule": "lib", "gpg": "openpgp", "pager": "log"}
ENABLING = "[log]\n\tshowSignature = true\n[diff]\n\tsubmodule = diff\n[core]\n\tfsmonitorHookVersion = 2\n"
PARTS = 8  # in which the longest test runs: at once, and each within the time of a test


def setting(key: str, value: str) -> str:
    section, *names, name = key.split(".")
    head = f'[{section} "{".".join(names)}"]' if names else f"[{section}]"
    return f'{head}\n\t{name} = "{value}"\n'


def keys(program: Path) -> dict[str, str]:
    """Every key that this git knows, its placeholders filled, with the program as the value."""
    listed = subprocess.run(
        ["git", "help", "-c"], capture_output=True, text=True, check=True
    ).stdout.split()
    found = {}
    # that could not stand in a file
    for key in [key for key in listed if "." in key and "_" not in key]:
        section = key.partition(".")[0]
        filled = re.sub(r"<[^>]*>", NAMES.get(section, "m"), key).replace("*", "m")
        found[filled] = f"!{program}" if section in ("alias", "credential") else str(program)
    more = (
        "gpg.x509.program",
        "gpg.ssh.program",
        "diff.m.command",
        "filter.m.process",
        "credential.m.helper",
    )
    return {**found, **dict.fromkeys(more, str(program))}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture
def scene(made: Scene) -> Scene:
    """The scene with the settings that it began with; no program of its has run."""
    made.trap({})
    made.marker.unlink(missing_ok=True)
    return made


@pytest.fixture(scope="module")
def lists(made: Scene) -> list[Call]:
    """The argument lists that the package gives to git, each with the place where that works."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        return recorded(made, monkeypatch)


def recorded(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    lists: dict[tuple[str, tuple[str, ...]], None] = {}
    command = git_process._command

    def record(place: git_process.GitPlace, arguments: tuple[str, ...]) -> list[str]:
        directory = dict(place.environment()).get("GIT_WORK_TREE", "") or place.switches[1]
        lists[f"{type(place).__name__} {directory.removeprefix('--git-dir=')}", arguments] = None
        return command(place, arguments)

    monkeypatch.setattr(git_process, "_command", record)
    assert "Written." in scene.drive_with_all_settings()[0]
    assert scene.drive()
    return list(lists)


def commands_in_the_source() -> set[str]:
    """The subcommands of git that the package names where it asks git."""
    found = set()
    for path in [
        path for path in PACKAGE.rglob("*.py") if "git_process import" in path.read_text()
    ]:
        for node in ast.walk(tree_of(path.read_text())):
            called = getattr(
                getattr(node, "func", None), "attr", getattr(getattr(node, "func", None), "id", "")
            )
            if isinstance(node, ast.Call) and called in (
                "ask_git",
                "ask_person",
                "_ask",
                "ask",
                "_run",
            ):
                words = [one.value for one in node.args[:3] if isinstance(one, ast.Constant)]
                found |= {
                    one for one in words if isinstance(one, str) and one.islower() and one[0] != "-"
                }
    return found


def test_a_repository_that_names_programs_everywhere_runs_none(
    scene: Scene, lists: list[Call]
) -> None:
    missing = commands_in_the_source() - {word for _, arguments in lists for word in arguments[:2]}
    assert missing <= {"merge-file"}, missing  # merge-file is for older gits
    before = scene.drive()
    settings = {
        key: value
        for key, value in keys(scene.program).items()
        if not key.lower().startswith(STORED)
    }
    scene.trap(settings, first=ENABLING)
    assert not scene.marker.exists()
    assert scene.drive() == before
    print(*scene.drive_with_all_settings(), sep="\n")  # git may refuse, in its words
    assert not scene.marker.exists()
    scene.trap({"gpg.program": str(scene.program)}, first=ENABLING)
    subprocess.run(
        ["git", "log", "-1"], cwd=scene.root, env=GIT_ENVIRONMENT, capture_output=True, check=True
    )
    assert scene.marker.exists()  # this is how it would have shown


@pytest.mark.parametrize("part", range(PARTS))
def test_no_argument_list_runs_a_program_with_any_single_key(
    scene: Scene, lists: list[Call], part: int
) -> None:
    settings = keys(scene.program)
    tries = [(key, *call) for key in sorted(settings)[part::PARTS] for call in lists]
    whole = len(tries)
    tries = Random(share.seed).sample(tries, share.some(whole, 60 // PARTS))
    print(f"seed {share.seed}: {len(tries)} of {whole}")
    trial = scene.root.parent / f"trial-{part}"
    trial.mkdir()
    worktree = find_worktree(str(scene.fix))
    assert worktree
    merges = Merges(worktree.common_dir, trial, 3600)
    merges.state_of(worktree)
    refused: dict[str, str] = {}
    for key, where, arguments in sorted(tries):
        scene.trap({key: settings[key]}, first=ENABLING)
        kind, _, directory = where.partition(" ")
        if kind == "TrialPlace":
            directory = (
                directory if directory.startswith(str(scene.root.parent)) else f"{trial}/tree"
            )
            place: git_process.GitPlace = TrialPlace(
                str(trial), directory, {"GIT_INDEX_FILE": f"{worktree.git_dir}/index"}
            )
        else:
            try:
                place = (
                    PersonPlace(directory) if kind == "PersonPlace" else RepositoryPlace(directory)
                )
            except GitUnavailableError as error:
                assert key.lower().startswith(STORED)
                refused[key] = str(error)
                continue
        done = run(place, arguments, b"log\n")
        if isinstance(place, RepositoryPlace):
            place.remove()
        if done.returncode > 1 and key.lower() in done.stderr.decode().lower():
            refused[key] = done.stderr.decode().strip()
        assert not scene.marker.exists(), (key, arguments)
    print(*sorted(f"{key}: {words}" for key, words in refused.items()), sep="\n")


def test_a_setting_that_says_how_the_repository_is_stored_is_kept_or_refused(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "app")
    for text, words in (
        (
            "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tnovelty = /bin/x\n",
            "unknown repository extension",
        ),
        (
            "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = !x\n",
            "bad value of extensions.object",
        ),
        ("[core]\n\trepositoryformatversion = 9\n", "Expected git repo version <= 1, found 9"),
        ("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n", "fatal"),
    ):
        (root / ".git/config").write_text(text)
        with pytest.raises(GitUnavailableError, match=words):
            ask_git(f"{root}/.git", "log")
    (root / ".git/config").write_text(
        "[core]\n\trepositoryformatversion = 0\n[extensions]\n\tnovelty = x\n"
    )
    assert "begin" in ask_git(f"{root}/.git", "log")


def test_in_a_partial_clone_nothing_is_fetched(tmp_path: Path) -> None:
    root, part, marker = repository(tmp_path / "app"), tmp_path / "part", tmp_path / "ran"
    (root / "readme").write_text("changed\n")
    git(root, "commit", "-q", "-a", "-m", "change")
    git(root, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{root}", str(part))
    git(part, "config", "remote.origin.uploadpack", f"touch {marker}; git-upload-pack")
    with pytest.raises(GitUnavailableError):
        ask_git(f"{part}/.git", "show", "-p", "HEAD")
    before = git(part, "rev-parse", "HEAD~1")
    # it cannot be told from a file that is not there
    assert GitObjects(f"{part}/.git").at(before, "readme") is None
    assert not marker.exists()
    git(part, "show", "-p", "HEAD")
    assert marker.exists()  # this is how a fetch would have shown


def test_a_program_called_git_in_the_repository_is_not_run(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for directory in (scene.root, scene.fix, scene.root / "bin"):
        directory.mkdir(exist_ok=True)
        (directory / "git").symlink_to(scene.program)
    path = os.environ["PATH"]
    monkeypatch.chdir(scene.root)
    for value in (f".:{path}", f":{path}", f"bin:{path}"):
        monkeypatch.setenv("PATH", value)
        assert "Add the tax" in ask_git(f"{scene.root}/.git", "log")
        assert GitObjects(f"{scene.root}/.git").at(scene.commit, "log")
    assert not scene.marker.exists()


def test_nothing_is_left_in_the_directory_for_temporary_files(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = scene.root.parent / "temporary"
    places.mkdir()
    monkeypatch.setenv("TMPDIR", str(places))
    scene.drive()
    assert list(places.glob(f"{PREFIX}*")) == []
