"""How often a prompt gets the memory that it is about, or rightly none, and the cost of that."""
