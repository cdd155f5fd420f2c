"""Text, the machine and errors: no word of the domain."""
