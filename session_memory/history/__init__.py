"""Everything that was said and done, and the search for it."""
