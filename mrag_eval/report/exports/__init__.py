"""Exports in other tools' formats."""
