"""The store's engine on SQLite. All of the store's SQL is here."""
