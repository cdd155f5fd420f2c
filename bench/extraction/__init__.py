"""How much of what the strategy without a model keeps is right, and how much of what is there it keeps.

Excerpts of conversations are labelled by hand with the items that should come of them (`excerpts.py` tells the form).
`developed.txt` is what the rules were made by, `unseen.txt` was written when they were done. Of real transcripts, where
they lie beside the project, the items are labelled by session, message and kind alone: `real.tsv`.
"""
