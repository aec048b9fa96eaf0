"""Benchmarks, read into one schema: from the Hugging Face hub, or from a local copy of the same files."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.datasets._base import Benchmark, DataBlock, Expected, LoaderSpec
    from mrag_eval.datasets._borderlines import OWN_LANGUAGES, UNKNOWN, query_id
    from mrag_eval.datasets._bordirlines import subjects
    from mrag_eval.datasets._bordirlines_files import (
        NEUTRAL,
        NOT_RELEVANT,
        AnnotatedBy,
        AskedRow,
        Label,
        majority,
        names_of_document,
        read_published_labels,
        read_relevance,
        read_viewpoint,
    )
    from mrag_eval.datasets._content import passages_hash
    from mrag_eval.datasets._declaration import (
        OWN_ROWS,
        Citation,
        DataSource,
        Declaration,
        GitHubFiles,
        HubDataset,
        PackagedFiles,
        WebFile,
    )
    from mrag_eval.datasets._english_answers import english_answers
    from mrag_eval.datasets._files import (
        iter_csv,
        iter_jsonl,
        parquet,
        read_bytes,
        require_columns,
        require_text,
        sha256_file,
    )
    from mrag_eval.datasets._identity import PublishedPart, PublishedRows, identity_of, read_locally
    from mrag_eval.datasets._jsonl import QUESTION_KEYS, as_question, questions_of, read_passages
    from mrag_eval.datasets._log_files import log_rows, read_lines, read_table
    from mrag_eval.datasets._published import Published
    from mrag_eval.datasets._registry import (
        LOADERS,
        data_of_config,
        declaration_of,
        default_split,
        known_of,
        load_benchmark,
        published_rows,
        validate_data,
    )
    from mrag_eval.datasets._relevant import Held, holder, read_judgements, with_absent, with_grades
    from mrag_eval.datasets._reload import reload
    from mrag_eval.datasets._share import shared
    from mrag_eval.datasets._xlcost_corpus import CUT_KEY, read_xlcost_passages
    from mrag_eval.datasets._xor_tydi import answers_of_the_file
else:
    __getattr__, __dir__ = lazy_door(__name__)

__all__ = ["load_benchmark"]
