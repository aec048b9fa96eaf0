"""Papers whose protocol several benchmarks follow."""

from __future__ import annotations

from mrag_eval.datasets._declaration import Citation

MRAG = Citation(
    key="chirkova2024mrag",
    authors="Chirkova et al.",
    title="Retrieval-augmented generation in multilingual settings",
    venue="KnowLLM 2024",
    year=2024,
    url="https://arxiv.org/abs/2407.01463",
)
CROSS_LINGUAL_COST = Citation(
    key="amiraz2025crosslingual",
    authors="Amiraz et al.",
    title="The Cross-Lingual Cost: Retrieval Biases in RAG over Arabic-English Corpora",
    venue="ArabicNLP 2025",
    year=2025,
    url="https://arxiv.org/abs/2507.07543",
)
BLEND = Citation(
    key="myung-etal-2024-blend",
    authors="Myung et al.",
    title="BLEnD: A Benchmark for LLMs on Everyday Knowledge in Diverse Cultures and Languages",
    venue="NeurIPS 2024, Datasets and Benchmarks",
    year=2024,
    url="https://arxiv.org/abs/2406.09948",
)
