"""session-memory: tells each coding agent what its other sessions did, and remembers what was said in all of them.

Three things to know first:

- A `Runtime` (runtimes/base.py) is what runs an agent, such as Claude Code or Codex.
- An `Entry` (transcripts/entries.py) is what was said or done in a session, as one record of its transcript has it.
- An update is what a session learns about the others: a `Report` for each of them (activity/report.py), made into
  the text of `[Session Activity]` by activity/updates.py.
"""

NAME = "session-memory"  # of the command
__version__ = "0.2.1"
