#!/usr/bin/env bash
# Two worktrees of one repository. The second is in a folder of the first, `.claude/worktrees/b`, where Claude Code makes them; the line
# that hides this folder from git is in `.git/info/exclude` or in `.gitignore`. From the first worktree, all files are formatted, then the
# package is built.
# Guess: programs that leave out the files that git ignores go by both files, so the second worktree is left alone.
# Seen: with the line in `.git/info/exclude`, black 26.10.1 and Prettier 3.10.1 format the files of the second worktree, in which another
# agent may be editing, and hatchling 1.33.0 and `npm pack` put its files into the package. All four go by `.gitignore`. Biome 2.6.8 and
# isort 9.0.2 go by neither unless they are set up for it. ruff 0.17.6 goes by both.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export GIT_CONFIG_GLOBAL="$directory/gitconfig" GIT_CONFIG_NOSYSTEM=1 HOME="$directory"
git config --global user.email a@example.org; git config --global user.name A; git config --global init.defaultBranch main
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check black==26.10.1 ruff==0.17.6 isort==9.0.2 hatchling==1.33.0
npm install --silent --no-audit --no-fund prettier@3.10.1 @biomejs/biome@2.6.8
export PATH="$directory/env/bin:$directory/node_modules/.bin:$PATH"
formatted() { # NAME COMMAND...
    "${@:2}" >>"$directory/log" 2>&1
    echo "$1: $(git -C "$b" diff --name-only | tr '\n' ' ')" | sed 's/ $//; s/:$/: nothing/'
    git -C "$b" checkout -q .; git checkout -q .
}
b=.claude/worktrees/b
for file in .git/info/exclude .gitignore; do
    mkdir shop; cd shop; git init -q
    mkdir shop; printf 'import sys\nimport os\n\nx = {"b":1}\n' >shop/__init__.py; echo 'let a = {b:1}' >cart.js
    printf '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n[project]\nname = "shop"\nversion = "1.0"\n' >pyproject.toml
    printf '{\n  "name": "shop",\n  "version": "1.0.0"\n}\n' >package.json
    echo /.claude/worktrees/ >>"$file"
    git add -A; git commit -qm one; git worktree add -q "$b" -b b
    echo "$file hides it; git sees $(git status --porcelain | wc -l) files"
    formatted black black .
    formatted ruff ruff format .
    formatted isort isort .
    formatted prettier prettier --write '**/*.js'
    formatted biome biome format --write --javascript-formatter-indent-style=space .
    python3 -c 'import hatchling.build; hatchling.build.build_sdist("..")' >>../log 2>&1
    echo "hatchling: $(tar -tf ../shop-1.0.tar.gz | grep -c "$b/shop/") of its files"
    npm pack --silent --pack-destination .. >>../log
    echo "npm pack: $(tar -tf ../shop-1.0.0.tgz | grep -c "$b/shop/") of its files"
    cd ..; rm -rf shop
done | tee seen
diff seen - <<'END'
.git/info/exclude hides it; git sees 0 files
black: shop/__init__.py
ruff: nothing
isort: shop/__init__.py
prettier: cart.js
biome: cart.js package.json
hatchling: 1 of its files
npm pack: 1 of its files
.gitignore hides it; git sees 0 files
black: nothing
ruff: nothing
isort: shop/__init__.py
prettier: nothing
biome: cart.js package.json
hatchling: 0 of its files
npm pack: 0 of its files
END
