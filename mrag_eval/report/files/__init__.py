"""Readers of result and sample files."""
