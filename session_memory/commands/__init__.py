"""The subcommands of `session-memory`, a module each, which `cli` loads; and what several of them need: `arguments`,
`output`, `opened_store`, `progress`.

A command parses its arguments, calls what does the work, and prints the result: what is of use without a command line
is elsewhere. new, install and uninstall run on a bare Python.
"""
