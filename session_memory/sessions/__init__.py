"""Sessions: runtimes, transcripts, settings, and the privacy gate."""
