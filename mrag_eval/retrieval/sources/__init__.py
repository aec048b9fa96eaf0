"""Sources of passages, one module each."""
