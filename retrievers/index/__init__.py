"""Indexes: loading, search and fusion."""
