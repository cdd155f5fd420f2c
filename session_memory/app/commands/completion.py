"""`session-memory completion`: prints a completion script for a shell.

It completes the commands and their options, and the sessions, projects and memories that
`candidates` finds."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from ...common.system.terminal import Terminal
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.section_table import KEYS

SUMMARY = "print a completion script for bash, zsh or fish"
EPILOG = """
save it where your shell looks for it, and open a new shell:
  session-memory completion bash > ~/.local/share/bash-completion/completions/session-memory
  session-memory completion zsh > "${fpath[1]}/_session-memory"
  session-memory completion fish > ~/.config/fish/completions/session-memory.fish
"""

# The kinds of `candidates` by the name of an argument. Keys with a command and an argument take
# precedence.
_KINDS = {
    "session": "sessions",
    "project": "projects",
    "read name": "sessions",
    "forget session": "ids",
    "forget project": "directories",
    "restore session": "",  # takes sessions that no longer exist here
    "memories words": "memories",
}
# Each script passes on the kind and the word typed so far. A title may contain anything, and bash
# would run `$(...)` in a word that is unquoted or in double quotes. zsh and fish quote words
# themselves.
_BASH = r"""
_session_memory_candidates() {
  local typed=$2 quote= value
  case $typed in
    [\"\']*) quote=${typed:0:1} typed=${typed:1} ;;
    *) typed=${typed//\\/} ;;
  esac
  while IFS=$'\t' read -r value _; do
    case $quote in
      \') [[ $value == *\'* ]] && continue ;;
      \") [[ $value == *[\"\$\`\\!]* ]] && continue ;;
      *) printf -v value %q "$value"; value=${value//:/\\:}; value=${value//=/\\=} ;;
    esac
    printf '%s\n' "$value"
  done < <(session-memory __complete "$1" "$typed" "${COMP_WORDS[@]}" 2>/dev/null </dev/null)
}"""
_ZSH = r"""
_session_memory_candidates() {
  local kind=${@[-1]} value about
  local -a values shown
  while IFS=$'\t' read -r value about; do
    values+=("$value")
    shown+=("$value${about:+  -- $about}")
  done < <(session-memory __complete $kind "${(Q)PREFIX}" "${words[@]}" 2>/dev/null </dev/null)
  if (( $#values )); then
    compadd -V sessions -l -d shown -a values
  elif [[ $kind == (projects|directories) ]]; then
    _files -/
  fi
}"""
_FISH = r"""
function _session_memory_candidates
  command -q session-memory; or return
  set -l word (commandline -ct | string unescape)
  set -l found (session-memory __complete $argv[1] "$word" (commandline -opc) 2>/dev/null </dev/null)
  if set -q found[1]
    printf '%s\n' $found
  else if contains $argv[1] projects directories
    __fish_complete_directories "$word"
  end
end"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="your shell")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG


def run(arguments: argparse.Namespace) -> int:
    import shtab  # an install without a package index lacks it

    paths = {"PATH": shtab.FILE, "FILE": shtab.FILE, "DIR": shtab.DIRECTORY}
    names = {"config key": [key.name for key in KEYS if key.about]}
    names |= {
        f"{command} runtime": [runtime.name for runtime in all_runtimes()]
        for command in ("install", "search", "uninstall")
    }
    for parser in _parsers(arguments.parser):
        command = parser.prog.rpartition(" ")[2]
        for action in parser._actions:
            argument = f"{command} {action.dest}"
            action.choices = action.choices or names.get(argument)
            kind = _KINDS.get(argument, _KINDS.get(action.dest, ""))
            if action.metavar in paths:
                action.complete = paths[action.metavar]  # type: ignore[attr-defined]
            elif kind:
                action.complete = _asked_for(kind)  # type: ignore[attr-defined]
    Terminal(os.environ).verbatim(shtab.complete(arguments.parser, arguments.shell) + "\n")
    return 0


def _asked_for(kind: str) -> dict[str, object]:
    """Return the code with which each shell's script asks for candidates, for shtab."""
    in_bash = f"_session_memory_{kind}"
    of_kind = f'{in_bash}() {{ _session_memory_candidates {kind} "$1"; }}'
    return {
        "bash": in_bash,
        "zsh": f"_session_memory_candidates {kind}",
        "fish": f"(_session_memory_candidates {kind})",
        "preamble": {"bash": f"{_BASH}\n{of_kind}", "zsh": _ZSH, "fish": _FISH},
    }


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and the parsers of its actions at any depth."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from _parsers(subparser)
