"""Copies of runtimes' transcripts, whole or redacted, from which a session is restored that its
runtime has deleted."""
