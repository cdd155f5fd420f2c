"""The engine of a team's store: PostgreSQL, which members push to and read from."""
