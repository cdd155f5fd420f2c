"""Benchmarks: `python -m bench` measures the hook and the reader against their limits."""
