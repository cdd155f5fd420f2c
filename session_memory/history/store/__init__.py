"""The store: every transcript as entries in a database. It can be rebuilt at any time.

forgetting: steps that delete sessions for good
ingest: from transcripts to the store
location: which store is the caller's
refresh: opens a store and brings it up to date
rules: which rules apply to each transcript
sqlite: the engine of one machine
upkeep: its steps of upkeep
values: the values that come out of the store
"""
