"""The commands around the store: one module each."""
