"""Search: the query, its terms, the postings, the ranking, and the snippet."""
