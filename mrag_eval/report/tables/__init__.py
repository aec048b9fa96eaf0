"""Tables of scores and the papers' layouts."""
