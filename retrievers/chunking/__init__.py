"""Chunking of documents."""
