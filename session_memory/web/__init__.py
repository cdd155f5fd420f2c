"""The page: what all agents did, what each was told, what is remembered, in a browser on this machine."""
