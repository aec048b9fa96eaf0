"""Builders of new benchmarks: resumable pipelines of steps."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.building.qa._qa_build import QaBuilt, build_qa
    from mrag_eval.building.qa._qa_config import read_qa_config
    from mrag_eval.building.quality._quality import quality_tables
    from mrag_eval.building.steps._steps import yield_table
    from mrag_eval.building.territories._territories import build_territories
    from mrag_eval.building.xrag._xrag import build_xrag
    from mrag_eval.building.xrag._xrag_settings import read_settings
else:
    __getattr__, __dir__ = lazy_door(__name__)
