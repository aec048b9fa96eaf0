"""Failures of a stage, and replies that carry one."""

from __future__ import annotations

from mrag_eval.core import Failure, ModelReply


def test_a_failure_is_counted_by_stage_and_reason() -> None:
    failure = Failure.of("plan", "qwen", "timeout: no answer within 3 s: tried 4 times")
    assert (failure.reason, failure.detail) == ("timeout", "no answer within 3 s: tried 4 times")
    assert failure.why == "plan failed (timeout)"


def test_a_failed_reply_is_an_empty_text_that_knows_why() -> None:
    failure = Failure.of("answer", "gpt", "server: HTTP 500")
    assert ModelReply.failed(failure) == ""
    assert ModelReply.failed(failure).failure is failure
    assert ModelReply("Basel").failure is None
