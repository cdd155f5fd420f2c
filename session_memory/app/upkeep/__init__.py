"""Background work: keeping the store up to date, and the tasks that are due."""
