"""Sessions: runtimes, transcripts, settings, and the privacy gate.

confined_files: files of a group, reached step by step from its host's directory
runtimes: one class per runtime
settings: the settings, the rules, and the paths of homes and state
transcripts: entries, read cursors, the reader, and which sessions there are
"""
