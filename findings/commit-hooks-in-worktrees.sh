#!/usr/bin/env bash
# Commit hooks installed in one worktree, and a commit in another: husky is set up in the main worktree and the commit made in a new
# one; pre-commit is installed in a worktree with its own environment, and the commit made in the main worktree after that was removed.
# Guess: husky's hook runs in the new worktree; without the environment, pre-commit's hook finds no program and lets the commit pass.
# Seen (husky 9.1.7, pre-commit 4.7.0): git finds husky's hooks at a relative path, which `npm install` makes and git ignores, so in a
# new worktree no hook runs, without a word. pre-commit's hook is in the common directory and names the Python of the worktree that
# installed it, so once that worktree is gone, every commit in every worktree is refused.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export GIT_CONFIG_GLOBAL="$directory/gitconfig" GIT_CONFIG_NOSYSTEM=1 HOME="$directory"
git config --global user.email a@example.org; git config --global user.name A; git config --global init.defaultBranch main
commit() { # DIRECTORY
    echo "$RANDOM" >>"$1/file"; git -C "$1" add file
    if PATH=/usr/local/bin:/usr/bin:/bin git -C "$1" commit -qm "a commit" >>"$directory/log" 2>&1; then echo made; else echo refused; fi
}
{
    mkdir husky; cd husky; git init -q
    echo '{"name": "shop", "version": "1.0.0"}' >package.json; echo node_modules >.gitignore
    npm install --silent --no-audit --no-fund --save-dev husky@9.1.7; npx husky init
    git add -A; git commit -qm one --no-verify
    echo 'echo checked; exit 1' >.husky/pre-commit; git commit -qam two --no-verify
    git worktree add -q ../husky-2; cd ..
    echo "husky, a hook that refuses all: in the main worktree $(commit husky), in a new one $(commit husky-2)"

    mkdir pre; cd pre; git init -q
    printf 'repos:\n- repo: local\n  hooks:\n  - {id: ok, name: ok, entry: "true", language: system, always_run: true}\n' >.pre-commit-config.yaml
    git add -A; git commit -qm one; git worktree add -q ../pre-2; cd ..
    python3 -m venv pre-2/.venv
    pre-2/.venv/bin/pip install --quiet --disable-pip-version-check pre-commit==4.7.0
    (cd pre-2 && .venv/bin/pre-commit install >>"$directory/log")
    before=$(commit pre); git -C pre worktree remove --force ../pre-2
    echo "pre-commit, a hook that allows all: with the worktree that installed it $before, without it $(commit pre)"
    grep -o '`pre-commit` not found' log
} | tee seen
diff seen - <<'END'
husky, a hook that refuses all: in the main worktree refused, in a new one made
pre-commit, a hook that allows all: with the worktree that installed it made, without it refused
`pre-commit` not found
END
