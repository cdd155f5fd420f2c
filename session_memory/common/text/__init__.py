"""Text as values, without files: shortening, sanitizing, Markdown, timestamps, shell commands,
secrets."""
