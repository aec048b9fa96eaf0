"""Run folders: retrieval saved to disk and read back."""
