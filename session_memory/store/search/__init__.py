"""Search: a query, its terms, the postings, how they are ranked, and the snippet that is shown."""
