"""Ways to tell whether the passages shown support an answer."""
