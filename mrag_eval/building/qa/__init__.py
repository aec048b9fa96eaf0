"""Question-answer pairs drafted from a corpus."""
