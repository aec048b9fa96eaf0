"""XRAG's pipeline, from news articles to cross-lingual questions."""
