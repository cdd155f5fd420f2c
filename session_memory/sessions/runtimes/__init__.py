"""The runtimes whose sessions are remembered.

Each has a row in `extension_points.RUNTIMES`, and a folder with its class.

backup: base classes for copies of a runtime's sessions, and for restoring from them
base: `Runtime`, the base class with the defaults, and forms of it for usual ways to store sessions
detection: the runtime of a transcript, and the one that started this process
install: base classes for installs: places of settings, hooks and skills, names that users type
outside: runtimes in other packages
records: events, into which records are decoded, and the decoders' base class
table: a runtime by its transcript format, all of them, and those that may be on this machine
"""
