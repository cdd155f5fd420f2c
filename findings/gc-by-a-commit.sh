#!/usr/bin/env bash
# A repository with more loose objects than `gc.auto`, and work that is 20 days old: two stashes, and a linked worktree with a staged
# file and a commit on a detached HEAD. Someone makes a commit, with git or with dulwich. Both then collect garbage by themselves.
# Guess: both keep all of this; git gc does, since the index, the reflogs and the worktrees lead to it.
# Seen (dulwich 1.2.21): porcelain.commit() deletes all of it except the newest stash. Only branches, tags and the like count for it.
# Objects of the last two weeks stay.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check dulwich==1.2.21
cat >commit.py <<'PY'
from dulwich import porcelain

porcelain.commit("clone", message=b"next", author=b"a <a@b>", committer=b"a <a@b>")
PY
for by in git dulwich; do
  rm -rf clone side
  git init -qb main clone
  git -C clone config gc.autoDetach false
  git -C clone config gc.auto 200  # 6,700 if nobody sets it
  mkdir clone/data
  for number in $(seq 500); do echo "$number" >"clone/data/$number"; done
  echo 1 >clone/cart
  git -C clone add . && git -C clone -c gc.auto=0 commit -qm base
  git -C clone worktree add -q --detach ../side
  echo worktree >side/cart && git -C side -c gc.auto=0 commit -qam side
  for words in "older stash" "newer stash"; do echo "$words" >clone/cart && git -C clone stash -q; done
  echo staged >side/new && git -C side add new
  find clone/.git/objects -type f -exec touch -d "20 days ago" {} +
  before=$(find clone/.git/objects -type f | wc -l)
  case $by in
    git) git -C clone commit -q --allow-empty -m next 2>/dev/null ;;
    dulwich) env/bin/python commit.py ;;
  esac
  after=$(find clone/.git/objects -type f | wc -l)
  if [ "$after" -lt "$before" ]; then echo "$by: collected garbage"; fi
  for place in "side :new" "clone stash@{0}:cart" "clone stash@{1}:cart" "side HEAD:cart"; do
    echo "$by: ${place#* } in ${place% *}: $(git -C ${place% *} cat-file -p "${place#* }" 2>/dev/null || echo gone)"
  done
done | tee seen
diff seen - <<'END'
git: collected garbage
git: :new in side: staged
git: stash@{0}:cart in clone: newer stash
git: stash@{1}:cart in clone: older stash
git: HEAD:cart in side: worktree
dulwich: collected garbage
dulwich: :new in side: gone
dulwich: stash@{0}:cart in clone: newer stash
dulwich: stash@{1}:cart in clone: gone
dulwich: HEAD:cart in side: gone
END
