"""Access to the machine. Nothing here knows about sessions.

deadline: the deadline of a hook, and calls that may fail without failing the others
entry_points: the entry points of other packages, in this interpreter or another
file_changes: changes to a user's files, each made in one step
files: the calls of `os` without its import time, and private files
garbage: making many objects without the search for cycles
git: the worktree of a directory, its branch and commit, without starting git
git_directories: temporary directories in which git works
git_identity: the origin and first commit, by which clones of a repository are recognised
git_objects: files as commits have them, all by one `git cat-file`
git_process: starting git with the repository's own programs switched off
git_refs: stashes, branches and worktrees, without starting git
json: JSON without the `json` package, which takes long to import
leftover_files: deleting old files by their names
pgpass: the password file of libpq, and database URLs without passwords
plain_output: the streams of a command, made safe for a terminal
process_table: the processes of this machine, their parents and directories
processes: whether another process still runs
quick_json: JSON lines with orjson, if it is installed
quick_sqlite: SQLite without the `sqlite3` package, which takes long to import
sqlite: private SQLite files with migrations
sqlite_pages: the rows of a damaged SQLite file
sqlite_reads: reads that tell a failing disk from a damaged file
tables: rows as aligned columns, and texts that fit into columns
terminal: lines for people, JSON for programs, and errors
utf8_mode: restarting a command in UTF-8 mode
zstd: compressing with zstd
"""
