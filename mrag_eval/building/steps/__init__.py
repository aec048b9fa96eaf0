"""Pipelines of resumable steps."""
