"""`session-memory completion`: a script with which a shell completes the commands and their options."""

from __future__ import annotations

import argparse
from typing import NamedTuple

from .. import NAME

SUMMARY = "print a completion script for bash, zsh or fish"
EPILOG = """
save it where your shell looks for it, and open a new shell:
  session-memory completion bash > ~/.local/share/bash-completion/completions/session-memory
  session-memory completion zsh > "${fpath[1]}/_session-memory"
  session-memory completion fish > ~/.config/fish/completions/session-memory.fish
"""


class Words(NamedTuple):
    """The words that can follow a command: its `options`, the `choices` of its arguments, and the `values` of options
    that have a few. `actions` are the parsers of its subcommands."""

    options: list[str]
    choices: list[str]
    values: dict[str, list[str]]
    actions: dict[str, argparse.ArgumentParser]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(_SCRIPTS), help="the shell that it is for")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG


def run(arguments: argparse.Namespace) -> int:
    """Print the script, which is made of `parsers`: the parser of every command, by its name."""
    print(_SCRIPTS[arguments.shell](_lines(arguments.parsers)), end="")
    return 0


def words_of(parser: argparse.ArgumentParser) -> Words:
    """Return the words that a parser accepts, without those hidden from its help."""
    words = Words([], [], {}, {})
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        words.options.extend(action.option_strings)
        choices = [str(choice) for choice in action.choices or ()]
        if isinstance(action, argparse._SubParsersAction):
            words.actions.update(action.choices)
        if choices and action.option_strings:
            words.values.update(dict.fromkeys(action.option_strings, choices))
        elif choices:
            words.choices.extend(choices)
    return words


def _lines(parsers: dict[str, argparse.ArgumentParser]) -> dict[str, list[str]]:
    """Return the possible next words, by the words typed: `""` for none, a command, a command and its action, or one of
    these and an option with values."""
    lines = {"": [*parsers, "--help", "--version"]}
    for name, parser in parsers.items():
        words = words_of(parser)
        for typed, found in ((name, words), *((f"{name} {one}", words_of(own)) for one, own in words.actions.items())):
            lines[typed] = [*found.choices, *found.options]
            lines.update({f"{typed} {option}": values for option, values in found.values.items()})
    return lines


def _bash(lines: dict[str, list[str]]) -> str:
    cases = "\n".join(f'        "{typed}") words="{" ".join(found)}" ;;' for typed, found in lines.items())
    return f"""# bash completion of {NAME}
_session_memory() {{
    local first="" second="" last="" typed words=""
    [ "$COMP_CWORD" -lt 2 ] || first="${{COMP_WORDS[1]}}" last="${{COMP_WORDS[COMP_CWORD-1]}}"
    [ "$COMP_CWORD" -lt 3 ] || second="${{COMP_WORDS[2]}}"
    for typed in "$first $second $last" "$first $last" "$first $second" "$first"; do
        case "$typed" in
{cases}
        esac
        [ -z "$words" ] || break
    done
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _session_memory {NAME}
"""


def _zsh(lines: dict[str, list[str]]) -> str:
    # zsh runs a file of fpath for the first completion, which it must answer; a sourced file has no completion yet.
    return f"""#compdef {NAME}
autoload -U +X bashcompinit && bashcompinit
{_bash(lines)}[ "$funcstack[1]" != "_{NAME}" ] || _bash_complete -o default -F _session_memory
"""


def _fish(lines: dict[str, list[str]]) -> str:
    cases = "\n".join(
        f'            case "{typed}"\n                set words {" ".join(found)}' for typed, found in lines.items()
    )
    return f"""# fish completion of {NAME}
function __session_memory_words
    set -l typed (commandline -opc)
    set -e typed[1]
    set -l words
    for one in "$typed[1] $typed[2] $typed[-1]" "$typed[1] $typed[-1]" "$typed[1] $typed[2]" "$typed[1]"
        switch $one
{cases}
        end
        if test (count $words) -gt 0
            break
        end
    end
    printf "%s\\n" $words
end
complete -c {NAME} -n __fish_use_subcommand -f
complete -c {NAME} -a "(__session_memory_words)"
"""


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
