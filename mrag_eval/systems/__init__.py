"""RAG systems that are asked as they are: what they reply, in any shape, and how each kind of them is called."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.systems._adapters import Ask, ask_with
    from mrag_eval.systems._contexts import check_passages, hits_of, text_hash, told_languages
    from mrag_eval.systems._reply import SystemReply, plain, reply_of
    from mrag_eval.systems._shapes import (
        ASKED,
        OWN,
        PLAIN,
        SHAPES,
        Shape,
        completion_in,
        holds,
        in_own_terms,
        recognised,
        shape_of_columns,
        shape_of_reply,
    )
else:
    __getattr__, __dir__ = lazy_door(__name__)
