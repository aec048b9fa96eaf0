"""Labels added to finished runs: re-judging, annotation, inspection."""
