"""How often a prompt gets the memory that it is about, and nothing where it is about none; and what
that costs."""
