"""Search above the engine: same query, same answer on each.

index: the interface between search and an engine
postings: the items that have each part of a query
query: a typed query as a value
ranking: BM25 and bonuses
search: from a query to the best entries, each with a snippet
"""
