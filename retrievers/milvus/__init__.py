"""Indexes in Milvus."""
