"""Sessions: runtimes, transcripts, settings, and the privacy gate.

confined_files: files of a group, reached step by step from its host's directory
runtimes: one class per runtime
settings: the settings, the rules, and the paths of homes and state
state_reader: the states of sessions, read again and again
states: the rule for the state of a session
transcripts: entries, read cursors, the reader, and which sessions there are
"""
