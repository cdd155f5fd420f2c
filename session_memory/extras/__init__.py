"""Features that can each be deleted without breaking the others.

conformance: the conformance suite for runtimes
graph: memories in a Graphiti knowledge graph
host: groups of agents served by one program
page: the page in the browser
proof: updates that sessions received, and their effects
team: a store that several people or machines share
"""
