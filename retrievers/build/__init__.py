"""Index building: embedding, sharding, joining and merging."""
