"""Text as values, without files.

acting_commands: what git and package commands do
format: text on one line, shortened at the end of a word
json_comments: JSON with comments, made strict
json_edit: edits in JSON text that keep all other bytes
letters: letters in the form that search compares
markdown: text as Markdown without effects, and back
marks: letters and their marks, for the search index
paths: names and paths, and whether they are safe to create
sanitize: text from elsewhere, made safe for the store, people or a prompt
secrets: secrets in text
shell_commands: the family of a command line, such as `npm run check`
shell_effects: effects of a command line on files and worktrees
shell_names: files that a command may write without naming them
shell_words: the words of a command line
shell_written: the lines that a command wrote, if it shows them
task_names: numbers of issues, and the stem of a branch's name
timestamps: points in time as text, without `datetime`
tokens: an upper bound for the tokens of a text
toml_edit: TOML text, read, and tables added to it or removed
words: the lists of words in this package's files
written_lines: keyed hashes of the lines that edits and commands write
yaml_edit: YAML text, read, and items added to its lists or removed
"""
