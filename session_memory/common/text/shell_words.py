"""The words of a command line, split as the shell does. Pure.

It does not use `re`, which takes long to import.
"""

from __future__ import annotations

_BLANK = " \t\r"
_ENDS_WORD = " \t\r\n;&|<>()"
_DEEPEST = 20  # of `$(...)` in `$(...)`
_BEFORE_COMMANDS = frozenset(
    ("!", "do", "elif", "else", "if", "then", "time", "until", "while", "{")
)
_QUOTING = "'\"\\$`*?[{~#"  # ends a plain run of characters, together with what ends a word


class Word:
    """A word without its quotes, and as it was `typed`.

    `is_sure` means that the shell expands nothing in it."""

    def __init__(self, text: str, is_sure: bool, typed: str = "") -> None:
        self.text = text
        self.is_sure = is_sure
        self.typed = typed


class SimpleCommand:
    """One command: its words, the files for its output, and the operator before it ('')."""

    def __init__(self, before: str) -> None:
        self.before = before
        self.words: list[Word] = []
        self.outputs: list[Word] = []


def simple_commands(line: str) -> list[SimpleCommand]:
    """Return the commands of a command line, in order.

    A command with only `(` or `)` in its `before` opens or closes a subshell. The contents of
    here-documents and of `$(...)` are skipped."""
    return _Lexer(line).commands()


class _Lexer:
    """A pass through a command line, or from `at` to the end of a `$(...)`.

    That is `depth` deep in other ones."""

    def __init__(self, line: str, at: int = 0, depth: int = 0) -> None:
        self._line = line
        self._at = at
        self._depth = depth
        self._open: list[str] = []  # parentheses and `case` that are not closed yet
        self._is_over = False
        self._found: list[SimpleCommand] = []
        self._command = SimpleCommand("")
        # of the here-documents that begin behind this line
        self._here_ends: list[tuple[str, bool]] = []

    def commands(self) -> list[SimpleCommand]:
        line, end = self._line, len(self._line)
        while self._at < end and not self._is_over:
            character = line[self._at]
            if character in _BLANK:
                self._at += 1
            elif line.startswith("((", self._at) and self._is_first():
                self._skip_to(")", is_quoted=False)
            elif character == "#":
                at = line.find("\n", self._at)
                self._at = at if at >= 0 else end
            elif character in "<>" or line.startswith("&>", self._at):
                self._redirection()
            elif character in ";|&()\n":
                self._operator(character)
            else:
                word = self._word()
                if word.text.isdecimal() and self._at < end and line[self._at] in "<>":
                    continue  # the number of a descriptor
                if word.typed in ("case", "esac") and self._is_first():
                    self._note_case(word.typed)
                self._command.words.append(word)
        self._end_command("")
        return self._found

    def _is_first(self) -> bool:
        """Check if a command begins here."""
        return all([word.typed in _BEFORE_COMMANDS for word in self._command.words])

    def _note_case(self, word: str) -> None:
        if word == "case":
            self._open.append(word)
        elif self._open and self._open[-1] == "case":
            self._open.pop()

    def _parenthesis(self, character: str) -> str:
        """Record a parenthesis, and return it as an operator: `;` after a pattern of a `case`."""
        if character == "(":
            self._open.append(character)
        elif self._open and self._open[-1] == "case":
            return ";"
        elif self._open:
            self._open.pop()
        elif self._depth:
            self._is_over = True
        return character

    def _operator(self, character: str) -> None:
        doubled = character in "&|;" and self._line.startswith(character * 2, self._at)
        operator = character * 2 if doubled else character
        self._at += len(operator)
        if character in "()":
            character = operator = self._parenthesis(character)
        if operator == "|" and self._line.startswith("&", self._at):
            self._at += 1
        self._end_command(operator)
        if character == "\n" and self._here_ends:
            self._skip_here_documents()
        if character in "()":
            self._end_command(";")

    def _end_command(self, operator: str) -> None:
        command = self._command
        if command.words or command.outputs or command.before in ("(", ")"):
            self._found.append(command)
        elif command.before == "||" and operator == "\n":
            operator = "||"
        self._command = SimpleCommand(operator)

    def _redirection(self) -> None:
        line = self._line
        is_output = line[self._at] != "<"
        start = self._at
        while self._at < len(line) and line[self._at] in "<>&|-" and self._at - start < 3:
            if line[self._at] == "-" and line[start : self._at] != "<<":
                break
            self._at += 1
        operator = line[start : self._at]
        while self._at < len(line) and line[self._at] in _BLANK:
            self._at += 1
        if self._at >= len(line) or line[self._at] in ";|\n()<>":
            return
        word = self._word()
        if operator in ("<<", "<<-"):
            self._here_ends.append((word.text, operator == "<<-"))
        elif is_output and not (
            operator.endswith("&") and (word.text.isdecimal() or word.text == "-")
        ):
            self._command.outputs.append(word)

    def _skip_here_documents(self) -> None:
        for word, is_indented in self._here_ends:
            while self._at < len(self._line):
                end = self._line.find("\n", self._at)
                end = end if end >= 0 else len(self._line)
                text = self._line[self._at : end]
                self._at = end + 1
                if (text.lstrip("\t") if is_indented else text) == word:
                    break
        self._here_ends = []

    def _word(self) -> Word:
        line, end = self._line, len(self._line)
        begin = self._at
        parts: list[str] = []
        is_sure = True
        while self._at < end:
            character = line[self._at]
            if character in _ENDS_WORD:
                break
            if character == "'":
                close = line.find("'", self._at + 1)
                close = close if close >= 0 else end
                parts.append(line[self._at + 1 : close])
                self._at = close + 1
            elif character == '"':
                text, sure = self._double_quoted()
                parts.append(text)
                is_sure = is_sure and sure
            elif character == "\\":
                parts.append(
                    "" if line.startswith("\n", self._at + 1) else line[self._at + 1 : self._at + 2]
                )
                self._at += 2
            elif character in "$`":
                self._skip_expansion(is_quoted=False)
                is_sure = False
            else:
                start = self._at
                is_sure = (
                    is_sure and character not in "*?[" and not (character == "~" and not parts)
                )
                is_sure = is_sure and not (
                    character == "{" and line[start + 1 : start + 2] not in ("}", " ", "")
                )
                self._at += 1
                while (
                    self._at < end
                    and line[self._at] not in _ENDS_WORD
                    and line[self._at] not in _QUOTING
                ):
                    self._at += 1
                parts.append(line[start : self._at])
        return Word("".join(parts), is_sure, line[begin : self._at])

    def _double_quoted(self) -> tuple[str, bool]:
        """Return the text up to the closing quote, and whether nothing in it is expanded."""
        line, end = self._line, len(self._line)
        parts: list[str] = []
        is_sure = True
        self._at += 1
        while self._at < end and line[self._at] != '"':
            character = line[self._at]
            if character == "\\":
                following = line[self._at + 1 : self._at + 2]
                parts.append(
                    ""
                    if following == "\n"
                    else following
                    if following in '$`"\\'
                    else character + following
                )
                self._at += 2
            elif character in "$`":
                self._skip_expansion(is_quoted=True)
                is_sure = False
            else:
                start = self._at
                while self._at < end and line[self._at] not in '"\\$`':
                    self._at += 1
                parts.append(line[start : self._at])
        self._at += 1
        return "".join(parts), is_sure

    def _skip_expansion(self, *, is_quoted: bool) -> None:
        """Skip `$name`, `${...}`, `$(...)`, `$'...'` or backquotes, perhaps in double quotes."""
        line, end = self._line, len(self._line)
        if line[self._at] == "`":
            self._at += 1
            self._skip_to("`", is_quoted=True)
            return
        opening = line[self._at + 1 : self._at + 2]
        self._at += 1
        if opening == "'" and not is_quoted:
            self._at += 1
            while self._at < end and line[self._at] != "'":
                self._at += 1 + (line[self._at] == "\\")
            self._at += 1
        elif opening == "{":
            self._skip_to("}", is_quoted=False)
        elif line.startswith("((", self._at) or (opening == "(" and self._depth == _DEEPEST):
            self._skip_to(")", is_quoted=False)
        elif opening == "(":
            inner = _Lexer(line, self._at + 1, self._depth + 1)
            inner.commands()
            self._at = inner._at

    def _skip_to(self, closing: str, *, is_quoted: bool) -> None:
        """Skip to after a closing parenthesis, brace or backquote.

        Apostrophes are plain characters if it `is_quoted`."""
        line, end = self._line, len(self._line)
        opening = {")": "(", "}": "{"}.get(closing, "")
        depth = 0 if opening else 1
        while self._at < end:
            character = line[self._at]
            if character == "\\":
                self._at += 1
            elif character == "'" and not is_quoted:
                close = line.find("'", self._at + 1)
                self._at = close if close >= 0 else self._at
            elif character == opening:
                depth += 1
            elif character == closing:
                depth -= 1
                if not depth:
                    self._at += 1
                    return
            self._at += 1
