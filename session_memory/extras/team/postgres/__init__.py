"""The engine of a team's store: PostgreSQL, which members push to and read from.

connection: connections, and PostgreSQL's errors in plain words
engine: a team's store, read and searched
memories: the memories that members share
push: batches of sessions with their new items
rows: shared parts of the engine's queries
schema: the schema, created and migrated
"""
