"""Text, the machine and errors, without any word of the domain.

errors: the base of all errors raised on purpose
extensions: load the rows of `extension_points`
system: access to the machine
text: text as values, without files
"""
