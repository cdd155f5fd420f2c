"""The conformance suite for runtimes: the same story, in the records of each.

cases: tests of habits that some programs have
fixture: the fixture of one runtime, and how a test file uses the suite
runtimes: tests of a runtime's sessions, events, install and backup
transcripts: tests of a runtime's transcripts
"""
