"""The settings: their keys, their checks, the rules for sessions, and where homes and their state
lie."""
