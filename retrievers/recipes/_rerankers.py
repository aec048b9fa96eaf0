"""Recipes of reranking models whose input is more than a pair of texts.

Other rerankers are cross-encoders in the library's own layout, which need none.
"""

from __future__ import annotations

from mrag_eval.retrievers.recipes._recipe import Recipe, find

_HUB = "https://huggingface.co"

RERANKERS: tuple[Recipe, ...] = (
    Recipe(
        family="Qwen3-Reranker",
        pattern=r"qwen3-reranker",
        source="https://github.com/QwenLM/Qwen3-Embedding",
        licence="apache-2.0",
        longest=32768,
        instruction="Given a web search query, retrieve relevant passages that answer the query",
        instruct="<Instruct>: {instruction}\n",
        pieces=(
            "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
            'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n',
            "{instruct}<Query>: {query}\n<Document>: {passage}",
            "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
        ),
        answers=("yes", "no"),
    ),
    Recipe(
        family="mxbai-rerank v2",
        pattern=r"mxbai-rerank-(base|large)-v2",
        source="https://github.com/mixedbread-ai/mxbai-rerank",
        licence="apache-2.0",
        longest=8192,
        instruct="instruction: {instruction}\n",
        pieces=(
            "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
            "<|im_start|>user\n",
            "{instruct}query: {query}",
            "\n",
            "document: {passage}",
            "\n",
            "You are a search relevance expert who evaluates how well documents match search queries. For each "
            "query-document pair, carefully analyze the semantic relationship between them, then provide your binary "
            "relevance judgment (0 for not relevant, 1 for relevant).\nRelevance:",
            "<|im_end|>\n<|im_start|>assistant\n",
        ),
        answers=("1", "0"),
    ),
    Recipe(
        family="bge-reranker-v2-gemma",
        pattern=r"bge-reranker-v2-gemma$",
        source="https://github.com/FlagOpen/FlagEmbedding",
        licence="gemma",
        pieces=(
            "<bos>",
            "A: {query}",
            "\n",
            "B: {passage}",
            "\n",
            "Given a query A and a passage B, determine whether the passage contains an answer to the query by "
            "providing a prediction of either 'Yes' or 'No'.",
        ),
        answers=("Yes",),
    ),
    Recipe(
        family="jina-reranker-v3",
        pattern=r"jina-reranker-v3",
        source=f"{_HUB}/jinaai/jina-reranker-v3",
        licence="cc-by-nc-4.0",
        longest=131072,
        custom_code=True,
        lists=True,
    ),
)


def reranker_recipe(model: str) -> Recipe | None:
    """Return the recipe of a reranker by its name, or None for a plain cross-encoder."""
    return find(RERANKERS, model)
