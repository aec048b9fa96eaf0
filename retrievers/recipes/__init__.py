"""Recipes of published models: how each family is given its texts, as data."""
