"""Measure how right the answers are, on labelled and real histories."""
