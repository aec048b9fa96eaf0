"""Retrieval for the rows of a task: from an IR mode to the passages in the prompt."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.retrieval._bordirlines_pages import build_bordirlines, paragraphs
    from mrag_eval.retrieval._bordirlines_titles import TitledPage
    from mrag_eval.retrieval._corpora import corpus_path, held_by_index, index_record, known_corpora, open_index
    from mrag_eval.retrieval._corpus_build import (
        CorpusSettings,
        build_corpus,
        described,
        preset_languages,
        unfinished_corpora,
    )
    from mrag_eval.retrieval._corpus_commands import corpora_folder, how_to_add, how_to_build, small_corpus
    from mrag_eval.retrieval._pipeline import retrieve
    from mrag_eval.retrieval._plan import plan_rows
    from mrag_eval.retrieval._repeated import Repeated, indexed_passages, repeated
    from mrag_eval.retrieval._rows import FIRST, TaskRows, logged_row, said_text, served
    from mrag_eval.retrieval._starter_plan import plan_starter
    from mrag_eval.retrieval._starters import build_starter
    from mrag_eval.retrieval.agents._seats import EXAMPLE, agents_for
    from mrag_eval.retrieval.agents._trace import find_trace, read_traces, shown_trace
    from mrag_eval.retrieval.ahead._process import Order, retrieved_apart
    from mrag_eval.retrieval.ahead._write import open_folder, retrieve_into
    from mrag_eval.retrieval.saved._folder import RunFolder
    from mrag_eval.retrieval.saved._push import Push, push_folder
    from mrag_eval.retrieval.saved._records import as_record, from_record, row_hash
    from mrag_eval.retrieval.saved._terms import check_terms, repeats_questions
    from mrag_eval.retrieval.sources import Relevant, Source
    from mrag_eval.retrieval.sources._run_file import is_run, read_run
else:
    __getattr__, __dir__ = lazy_door(__name__)
