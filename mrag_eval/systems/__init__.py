"""RAG systems that are asked as they are: what they reply, in any shape, and how each kind of them is called."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.systems._adapters import Ask, ask_with
    from mrag_eval.systems._contexts import add_grade, check_passages, hits_of, text_hash, told_languages
    from mrag_eval.systems._parts import (
        FIELDS,
        OWN_KEYS,
        PASSAGE,
        Columns,
        LogReading,
        gathered,
        is_row,
        names_of,
        reading_of,
        reading_of_reply,
        rows_in,
    )
    from mrag_eval.systems._places import decoded, lists_in, value_at
    from mrag_eval.systems._reply import SystemReply, reply_of
    from mrag_eval.systems._terms import completion_in, grades_in, holds, in_own_terms
else:
    __getattr__, __dir__ = lazy_door(__name__)
