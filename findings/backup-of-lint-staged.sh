#!/usr/bin/env bash
# lint-staged keeps a backup in git's stash while its tasks run, and all worktrees of a repository share one stash. Here the task in
# worktree `a` lets a person in worktree `b` run `git stash pop`, who stashed an edit before.
# Guess: the pop brings back the edit that was stashed in `b`.
# Seen (lint-staged 16.4.0): it brings the backup, so the uncommitted edits of `a` appear in `b`, and the stash of `b` stays. At its end
# lint-staged misses its backup and exits with 1, so the commit is refused though all its tasks succeeded.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export GIT_CONFIG_GLOBAL="$directory/gitconfig" GIT_CONFIG_NOSYSTEM=1 HOME="$directory"
git config --global user.email a@example.org; git config --global user.name A; git config --global init.defaultBranch main
npm install --silent --no-audit --no-fund --prefix "$directory/npm" lint-staged@16.4.0
mkdir a; cd a; git init -q
echo one >one.txt; echo two >two.txt
echo '{"*.txt": "sh -c \"git -C ../b stash pop\""}' >.lintstagedrc.json
git add -A; git commit -qm one; git worktree add -q ../b
echo 'edit of b' >>../b/two.txt; git -C ../b stash -q
echo 'staged in a' >>one.txt; git add one.txt; echo 'not staged in a' >>two.txt
code=0; ../npm/node_modules/.bin/lint-staged >log 2>&1 || code=$?
{
    echo "lint-staged: $code,$(sed -n 's/.*\[FAILED\] lint-staged/ its/p' log)"
    echo "in b: $(git -C ../b diff -U0 | grep '^+[^+]' | paste -sd, -)"
    echo "left in the stash: $(git stash show -p | grep '^+[^+]')"
} | tee ../seen
diff ../seen - <<'END'
lint-staged: 1, its automatic backup is missing!
in b: +staged in a,+not staged in a
left in the stash: +edit of b
END
