"""Installing into homes and taking out again, with nothing but a bare Python's standard library."""
