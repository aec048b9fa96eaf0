"""Review of drafted questions by annotators."""
