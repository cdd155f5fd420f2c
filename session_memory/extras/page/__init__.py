"""The page: all agents' activity, the updates they received, and the memories, in a browser on this
machine."""
