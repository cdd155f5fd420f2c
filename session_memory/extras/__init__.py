"""Features that can each be deleted without breaking the others."""
