"""Shards, one a language: FAISS, BM25 and sparse."""
