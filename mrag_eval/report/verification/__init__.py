"""Verification of finished runs against their samples and the benchmark's settings."""
