#!/usr/bin/env bash
# A repository with git's sparse index (cone mode), and one with a split index. Four libraries add a new file and commit it.
# Guess: those that cannot read such an index refuse; none loses or damages anything.
# Seen (GitPython 3.2.1, dulwich 1.2.21, pygit2 1.21.0, isomorphic-git 1.44.19): three refuse, with an error that names neither kind of
# index. isomorphic-git reports no error, and its commit has a tree with an empty file name: git can then neither list nor check out
# HEAD, and `git status` fails until the branch is set back.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export GIT_CONFIG_GLOBAL="$directory/gitconfig" GIT_CONFIG_NOSYSTEM=1 HOME="$directory"
git config --global user.email a@example.org; git config --global user.name A; git config --global init.defaultBranch main
python3 -m venv env; env/bin/pip install --quiet --disable-pip-version-check GitPython==3.2.1 dulwich==1.2.21 pygit2==1.21.0
npm install --silent --no-audit --no-fund isomorphic-git@1.44.19
cat >commit.py <<'PY'
import sys

import dulwich.porcelain
import git
import pygit2

library, path = sys.argv[1:]
try:
    if library == "GitPython":
        index = git.Repo(path).index
        index.add(["new"])
        index.commit("two")
    elif library == "dulwich":
        dulwich.porcelain.add(path, [f"{path}/new"])
        dulwich.porcelain.commit(path, message=b"two")
    else:
        repository, author = pygit2.Repository(path), pygit2.Signature("A", "a@example.org")
        repository.index.add("new")
        tree = repository.index.write_tree()
        repository.create_commit("HEAD", author, author, "two", tree, [repository.head.target])
    print("commits", end="")
except Exception as error:
    print(type(error).__name__, end="")
PY
cat >commit.mjs <<'JS'
import fs from "fs";
import git from "isomorphic-git";
const dir = process.argv[3];
try {
  await git.add({ fs, dir, filepath: "new" });
  await git.commit({ fs, dir, message: "two", author: { name: "A", email: "a@example.org" } });
  process.stdout.write("commits");
} catch (error) { process.stdout.write(error.name); }
JS
{
    for kind in sparse split; do for library in GitPython dulwich pygit2 isomorphic-git; do
        rm -rf shop; git init -q shop; mkdir -p shop/src shop/docs
        for file in src/a docs/b c; do echo 1 >shop/$file; done
        git -C shop add -A; git -C shop commit -qm one
        if [ $kind = sparse ]; then git -C shop sparse-checkout set --cone --sparse-index src
        else git -C shop config core.splitIndex true; git -C shop update-index --split-index; fi
        echo new >shop/new
        printf '%s, %s: ' $kind $library
        if [ $library = isomorphic-git ]; then node commit.mjs $library shop; else env/bin/python commit.py $library shop; fi
        echo "; git lists $(git -C shop ls-tree -r --name-only HEAD 2>error | paste -sd, -)$(sed 's/^/, /' error)"
    done; done
} | tee seen
diff seen - <<'END'
sparse, GitPython: ValueError; git lists c,docs/b,src/a
sparse, dulwich: ChecksumMismatch; git lists c,docs/b,src/a
sparse, pygit2: GitError; git lists c,docs/b,src/a
sparse, isomorphic-git: commits; git lists c, fatal: empty filename in tree entry
split, GitPython: ValueError; git lists c,docs/b,src/a
split, dulwich: ChecksumMismatch; git lists c,docs/b,src/a
split, pygit2: GitError; git lists c,docs/b,src/a
split, isomorphic-git: commits; git lists , fatal: empty filename in tree entry
END
