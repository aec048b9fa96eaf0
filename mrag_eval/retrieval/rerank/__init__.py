"""The second stage: rerankers and their order of the hits."""
