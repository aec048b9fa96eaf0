"""Model types that this package registers with the harness."""
