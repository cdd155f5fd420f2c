#!/usr/bin/env bash
# Two agents in one folder. One commits `cart`, of which one edit is staged. While the commit's checks run, the other adds a line to a
# file that already has an edit that is not staged: to `price`, which nobody staged, or to `cart` itself.
# Guess: the line stays in the working tree and out of the commit, or the tool reports a conflict and keeps both.
# Seen: pre-commit 4.7.0 and prek 0.5.11 set both files back to what is staged during the checks. The other agent reads them without the
# first edit. Then its line counts as a change by the check: the commit is refused and the line is gone, from the files and from git.
# lint-staged 16.4.0 does so with `cart` alone, and commits the line that the other agent added. lefthook 2.2.2 keeps it out of the commit.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export GIT_CONFIG_GLOBAL="$directory/gitconfig" GIT_CONFIG_NOSYSTEM=1 HOME="$directory"
git config --global user.email a@example.org; git config --global user.name A; git config --global init.defaultBranch main
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check pre-commit==4.7.0 prek==0.5.11 lefthook==2.2.2
npm install --silent --no-audit --no-fund --prefix "$directory/npm" lint-staged@16.4.0
export PATH="$directory/env/bin:$directory/npm/node_modules/.bin:$PATH" XDG_CACHE_HOME="$directory/cache"
cat >check.sh <<'SH'
grep -q 'edit 1' "$EDITED" && echo "with edit 1" >"../seen-by-the-other" || echo "without edit 1" >"../seen-by-the-other"
echo "edit 2" >>"$EDITED"
SH
for tool in pre-commit prek lint-staged lefthook; do for EDITED in price cart; do
    export EDITED
    rm -rf clone; mkdir clone; cd clone; git init -q
    seq 8 >cart; seq 8 >price
    case $tool in
        pre-commit | prek)
            printf 'repos:\n- repo: local\n  hooks:\n  - {id: ok, name: ok, entry: sh ../check.sh, language: system, pass_filenames: false}\n' >.pre-commit-config.yaml
            "$tool" install >>../log 2>&1 ;;
        lint-staged)
            echo '{"cart": "sh ../check.sh"}' >.lintstagedrc.json
            printf '#!/bin/sh\nexec lint-staged\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit ;;
        lefthook)
            printf 'pre-commit:\n  jobs:\n  - run: sh ../check.sh\n' >lefthook.yml
            lefthook install >>../log 2>&1 ;;
    esac
    git add -A; git commit -qm base --no-verify
    sed -i.old '1s/$/ staged/' cart; git add cart
    echo "edit 1" >>"$EDITED"
    if git commit -qm next >>../log 2>&1; then commit=made; else commit=refused; fi
    committed=$(git show "HEAD:$EDITED" | grep edit | paste -sd, - || true)
    echo "$tool, edit of $EDITED: read $(cat ../seen-by-the-other); commit $commit${committed:+ with $committed}; left: $(grep edit "$EDITED" | paste -sd, -)"
    cd ..
done; done | tee seen
diff seen - <<'END'
pre-commit, edit of price: read without edit 1; commit refused; left: edit 1
pre-commit, edit of cart: read without edit 1; commit refused; left: edit 1
prek, edit of price: read without edit 1; commit refused; left: edit 1
prek, edit of cart: read without edit 1; commit refused; left: edit 1
lint-staged, edit of price: read with edit 1; commit made; left: edit 1,edit 2
lint-staged, edit of cart: read without edit 1; commit made with edit 2; left: edit 1,edit 2
lefthook, edit of price: read with edit 1; commit made; left: edit 1,edit 2
lefthook, edit of cart: read without edit 1; commit made; left: edit 1,edit 2
END
