"""BordIRlines rows for further territories."""
