"""The subcommands of `session-memory`: a module each, named as it is called, with what `cli` asks of it: `SUMMARY`,
`add_arguments` and `run`, perhaps `OPTIONS`. Beside them, what they share: options, paths and times as people write
them, the store opened for a command, progress, the watcher's lock. What is of use without a command line is elsewhere.

`cli` loads only what is called, so nothing is imported here. new, install and uninstall are in `setup`: they run on a
bare Python.
"""
