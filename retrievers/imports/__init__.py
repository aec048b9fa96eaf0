"""Indexes from vectors that others have published: sources, presets, checks."""
