"""Quality report of a benchmark."""
