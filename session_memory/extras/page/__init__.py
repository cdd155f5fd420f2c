"""The page: all agents' activity, updates and memories, in a browser on this machine.

command: `session-memory page`
export: conversations as one HTML file
jinja: the environment of the templates
pages: the table of views
views: one function per view
"""
