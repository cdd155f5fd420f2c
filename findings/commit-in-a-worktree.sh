#!/usr/bin/env bash
# Three libraries commit in a linked worktree (`git worktree add`), where `.git` is a file.
# Guess: each makes a commit that git sees, or says that it cannot work there.
# Seen: pygit2 1.21.0 and dulwich 1.2.21 commit as git does. isomorphic-git 1.44.19 follows the file but not `commondir`: to it the
# repository is empty. Its commit succeeds, has no parent, and lies with its branch in `.git/worktrees/NAME`, which git does not read.
# For git the branch did not move, the staged file's object is missing, so that `git commit` fails, and `git worktree remove --force`
# deletes the commit (git 2.39.5).
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check pygit2==1.21.0 dulwich==1.2.21
npm install --silent --no-audit --no-fund isomorphic-git@1.44.19
cat >by_pygit2.py <<'PY'
import pygit2

repository, author = pygit2.Repository("side"), pygit2.Signature("a", "a@b")
repository.index.add("cart")
repository.index.write()
tree, parents = repository.index.write_tree(), [repository.head.target]
print(repository.create_commit("HEAD", author, author, "edit", tree, parents))
PY
cat >by_dulwich.py <<'PY'
import pathlib
from dulwich import porcelain

porcelain.add("side", [pathlib.Path("side/cart").resolve()])
print(porcelain.commit("side", message=b"edit", author=b"a <a@b>", committer=b"a <a@b>").decode())
PY
cat >by_isomorphic_git.mjs <<'JS'
import fs from "node:fs";
import git from "isomorphic-git";
const where = { fs, dir: "side" };
await git.add({ ...where, filepath: "cart" });
console.log(await git.commit({ ...where, message: "edit", author: { name: "a", email: "a@b" } }));
JS
for by in by_pygit2.py by_dulwich.py by_isomorphic_git.mjs; do
  rm -rf clone side
  git init -qb main clone
  echo 1 >clone/cart
  git -C clone add cart && git -C clone commit -qm base && git -C clone worktree add -qb side ../side
  echo 2 >side/cart
  case $by in *.py) commit=$(env/bin/python $by) ;; *) commit=$(node $by) ;; esac
  branch="as before" commits=$(git -C side rev-list --count side)
  if [ "$(git -C side rev-parse side)" = "$commit" ]; then branch=moved; fi
  echo 3 >>side/other
  git -C side add other
  if git -C side commit -qm next 2>/dev/null; then next=works; else next=fails; fi
  git -C clone worktree remove --force side
  kept=$(find clone/.git -path "*${commit:0:2}/${commit:2}" | wc -l)
  echo "$by: branch $branch, commits $commits, next git commit $next, objects of the commit after worktree remove: $kept"
done | tee seen
diff seen - <<'END'
by_pygit2.py: branch moved, commits 2, next git commit works, objects of the commit after worktree remove: 1
by_dulwich.py: branch moved, commits 2, next git commit works, objects of the commit after worktree remove: 1
by_isomorphic_git.mjs: branch as before, commits 1, next git commit fails, objects of the commit after worktree remove: 0
END
