"""What the other sessions did since this one last heard of them."""
