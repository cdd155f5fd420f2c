"""The settings: their keys and checks, the rules for sessions, and the paths of homes and state.

check: checks of a settings file: wrong keys are faults
compiled: the settings of a home, compiled for prompts
forgotten: the record of forgotten sessions
homes: where everything of a person, an agent or a runtime is stored
host_layout: where everything of a host and its groups is stored
keys: writing keys into a sample, the reference, or a user's file
privacy: all rules that apply to a session
program: where the program, its environment and its source are
registry: the agent homes that the person registered
replaced_keys: former names of keys, and keys of other programs
rules: one person's rules, which exclude or share sessions
rules_check: checks of rules: an invalid one hides all it could mean
section_table: all sections with their keys
sections: the sections of config.yaml, their values and defaults
yaml_file: a YAML file as values with their lines
"""
