"""The subcommands of `session-memory`, one module each, loaded by `cli`.

Shared parts are `arguments`, `output`, `opened_store` and `progress`. A command parses its
arguments, calls other packages for the work, and prints the result: its `run` returns the exit
code, and raises SessionMemoryError or OSError. new, install and uninstall, which run on a bare
Python, are in `install.command`."""
