#!/usr/bin/env bash
# The same two branches merged by git and by three libraries.
# Guess: all three find renames, or report a conflict where they do not; none merges cleanly what git calls a conflict.
# Seen (pygit2 1.21.0 with libgit2 1.9.7, dulwich 1.2.21, isomorphic-git 1.44.19; git 2.39.5):
# - both sides rename a file, differently: git and libgit2 report a conflict; dulwich and isomorphic-git merge, and the file is there twice;
# - a new file in a folder that the other side renamed: git reports it; libgit2 and isomorphic-git leave it in the old folder, silently;
# - both sides rename a file alike and edit it in different places: git merges, the three libraries report a conflict.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory GIT_CONFIG_NOSYSTEM=1
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check pygit2==1.21.0 dulwich==1.2.21 merge3==0.0.16
npm install --silent --no-audit --no-fund isomorphic-git@1.44.19
cat >merge.cjs <<'JS'
const git = require("isomorphic-git");
const fs = require("fs");
const [, , dir] = process.argv;
const author = { name: "a", email: "a@b" };
git.merge({ fs, dir, ours: "main", theirs: "side", author })
	.then(async () => {
		await git.checkout({ fs, dir, ref: "main", force: true });
		console.log("merges:", (await git.listFiles({ fs, dir })).join(" "));
	})
	.catch((error) => console.log(error.code === "MergeConflictError" ? "conflict" : error.code));
JS
cat >seen.py <<'PY'
import pathlib
import shutil
import subprocess
import pygit2
from dulwich import porcelain


def git(*words):
    command = ["git", "-C", "repo", "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, capture_output=True, text=True)


def lines(first, last, **changed):
    return "".join(changed.get(f"n{number}", f"{number}") + "\n" for number in range(first, last + 1))


def write(path, text):
    file = pathlib.Path("repo", path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def files(names):
    return "merges: " + " ".join(sorted(names))


def both_rename():
    write("f", lines(1, 30))
    yield
    git("mv", "f", "h")
    yield
    git("mv", "f", "g")


def folder_renamed():
    write("dir/a", lines(1, 30))
    write("dir/b", lines(40, 70))
    yield
    git("mv", "dir", "moved")
    yield
    write("dir/new", "new\n")


def renamed_alike():
    write("f", lines(1, 30))
    yield
    git("mv", "f", "h")
    write("h", lines(1, 30, n30="last"))
    yield
    git("mv", "f", "h")
    write("h", lines(1, 30, n1="first"))


def by_git():
    done = git("merge", "--no-edit", "side")
    return "conflict" if done.returncode else files(git("ls-files").stdout.split())


def by_libgit2():
    repository = pygit2.Repository("repo")
    index = repository.merge_commits(*(repository.revparse_single(name).id for name in ("main", "side")))
    return "conflict" if index.conflicts else files(entry.path for entry in index)


def by_dulwich():
    names = {"author": b"a <a@b>", "committer": b"a <a@b>", "message": b"merge"}
    _, conflicts = porcelain.merge("repo", "side", **names)
    return "conflict" if conflicts else files(git("ls-files").stdout.split())


def by_isomorphic_git():
    return subprocess.run(["node", "merge.cjs", "repo"], capture_output=True, text=True).stdout.strip()


for scene in (both_rename, folder_renamed, renamed_alike):
    for merge in (by_git, by_libgit2, by_dulwich, by_isomorphic_git):
        shutil.rmtree("repo", ignore_errors=True)
        subprocess.run(["git", "init", "-qb", "main", "repo"], check=True)
        steps = scene()
        next(steps)
        git("add", "-A"), git("commit", "-qm", "base"), git("branch", "side")
        next(steps)
        git("add", "-A"), git("commit", "-qm", "main"), git("switch", "-q", "side")
        next(steps, None)
        git("add", "-A"), git("commit", "-qm", "side"), git("switch", "-q", "main")
        print(f"{scene.__name__} {merge.__name__}: {merge()}")
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
both_rename by_git: conflict
both_rename by_libgit2: conflict
both_rename by_dulwich: merges: g h
both_rename by_isomorphic_git: merges: g h
folder_renamed by_git: conflict
folder_renamed by_libgit2: merges: dir/new moved/a moved/b
folder_renamed by_dulwich: conflict
folder_renamed by_isomorphic_git: merges: dir/new moved/a moved/b
renamed_alike by_git: merges: h
renamed_alike by_libgit2: conflict
renamed_alike by_dulwich: conflict
renamed_alike by_isomorphic_git: conflict
END
