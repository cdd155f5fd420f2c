"""Adding hooks to a runtime's settings, and removing them.

formats: the settings file at a path, as JSON, TOML or YAML
ledger: the record of additions and of the bytes before them
plan: the changes to one home: planned, made, and undone
settings_file: our hooks and permission rules in a settings file
"""
