"""Adding hooks to a runtime's settings, and removing them.

ledger: the record of additions and of the bytes before them
plan: the changes to one home: planned, made, and undone
settings_file: our hooks and permission rules in a settings file
toml_settings: our hooks in a settings file that is TOML
"""
