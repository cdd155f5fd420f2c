"""What is usual in how agents work: which commands fail and what helped, what is edited together."""
