"""Work that nobody waits for: bringing the store up to date, and working off what is due."""
