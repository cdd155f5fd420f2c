"""A store that several people or machines share."""
