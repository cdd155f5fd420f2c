"""The settings: their keys and checks, the rules for sessions, and the paths of homes and state."""
