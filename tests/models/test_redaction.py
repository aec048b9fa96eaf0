"""A planted key appears nowhere: not in logs, errors or the cache, whoever writes and whatever fails."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mrag_eval.models import AuxModel
from mrag_eval.platform import Store, install_redaction, key_in, redact
from tests.models.conftest import ask
from tests.worlds.model_server import Answer, ModelServer

KEY = "planted-Key.0123456789"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Collect everything that is logged, at every level, as a handler prints it."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield out
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.mark.parametrize(
    "text",
    [
        "headers={'Authorization': 'Bearer aVeryPrivateThing'}",
        "<CIMultiDict('Host': 'x', 'Authorization': 'Bearer aVeryPrivateThing', 'Accept': '*/*')>",
        "Authorization: Bearer aVeryPrivateThing",
        "authorization=aVeryPrivateThing",
        '{"x-api-key": "aVeryPrivateThing"}',
        "api_key='aVeryPrivateThing'",
        "x-goog-api-key: aVeryPrivateThing",
        "(b'authorization', b'Bearer aVeryPrivateThing')",
        "curl -H 'authorization: bearer aVeryPrivateThing'",
    ],
)
def test_headers_are_hidden(text: str) -> None:
    assert "aVeryPrivateThing" not in redact(text)
    assert "(hidden)" in redact(text)


def test_strings_shaped_like_keys_are_hidden() -> None:
    for key in ("sk-" + "a1B2" * 8, "sk-proj-" + "a1B2" * 8, "hf_" + "a1B2" * 8, "AIza" + "a1B2" * 9):
        assert redact(f"Incorrect API key provided: {key}.") == "Incorrect API key provided: (hidden)."


def test_a_key_is_hidden_from_the_moment_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("the-1st-value-of-it", "the-2nd-value-of-it"):
        monkeypatch.setenv("SOME_SERVICE_KEY", key)
        assert redact(f"no: {key}!") == f"no: {key}!"
        assert key_in("SOME_SERVICE_KEY", "model 'm'") == key
        assert redact(f"no: {key}!") == "no: (hidden)!"


@pytest.mark.parametrize(
    "text",
    ["897 calls, 0 from cache", "the author is Tokenov", "skip_this_very_long_identifier_of_mine", "max_tokens: 512",
     "the key question: how?", "bear with me", "task hf_something"],
)  # fmt: skip
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == text


class TestRecords:
    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        key_in("OPENAI_API_KEY", "model 'm'")
        install_redaction()

    def test_message_arguments_and_traceback(self, log: io.StringIO) -> None:
        logger = logging.getLogger("some.library.deep.down")
        logger.warning("sent %s with %r", "x", {"Authorization": f"Bearer {KEY}"})
        logger.error(f"f-string {KEY}")
        try:
            raise ValueError(f"refused {KEY}")
        except ValueError:
            logger.exception("it failed")
        logger.info("%d of %s", 3, "many")
        assert KEY not in log.getvalue()
        assert "ValueError: refused (hidden)" in log.getvalue()
        assert "3 of many" in log.getvalue()

    def test_broken_log_call_does_not_raise(self, log: io.StringIO) -> None:
        class Bad:
            def __str__(self) -> str:
                raise RuntimeError(KEY)

        logging.getLogger("x").handle(logging.getLogRecordFactory()("x", 30, "f", 1, "%s", (Bad(),), None))
        assert KEY not in log.getvalue()

    def test_installing_twice_is_installing_once(self) -> None:
        before = logging.getLogRecordFactory()
        install_redaction()
        assert logging.getLogRecordFactory() is before


@pytest.mark.parametrize(
    "answer",
    [Answer(401, f"Incorrect API key provided: {KEY}"), Answer(500, f"oops {KEY}"), Answer(200, f"<html>{KEY}"),
     Answer(200, "{", reset=True), Answer(307, KEY, {"Location": f"http://x/{KEY}"})],
    ids=lambda a: str(a.status),
)  # fmt: skip
def test_failing_auxiliary_model_keeps_the_key(
    start: Callable[..., ModelServer],
    model_of: Callable[..., AuxModel],
    store: Store,
    log: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
    answer: Answer,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = start(lambda body, n: answer)
    model = model_of(server, store, retries=1, api_key_env="OPENAI_API_KEY")
    replies = model.seat().generate(ask(*(f"q{i}" for i in range(12))))
    assert server.requests[0][1]["Authorization"] == f"Bearer {KEY}"
    assert all(r.error for r in replies)
    for text in (log.getvalue(), repr(replies), repr(model.ledger), repr(vars(model)), str(model._backend.endpoint)):
        assert KEY not in text
    files = [file.read_bytes() for file in store.path.parent.iterdir()]
    assert files
    assert all(KEY.encode() not in content for content in files)


# An evaluated model, called by the harness itself.
EVALUATED = """
import logging, sys, asyncio
logging.basicConfig(level=logging.DEBUG)
if sys.argv[2] == "redacted":
    from mrag_eval.platform._redaction import install_redaction
    install_redaction()
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model
lm = get_model("local-chat-completions")(model="m", base_url=sys.argv[1], num_concurrent=2, max_retries=1)
prompts = [lm.apply_chat_template([{"role": "user", "content": str(i)}]) for i in range(3)]
try:
    lm.generate_until([Instance("generate_until", {}, (p, {"max_gen_toks": 4}), i) for i, p in enumerate(prompts)])
except Exception as error:
    logging.getLogger("here").error("failed: %r", error)
    print("FAILED AS MEANT")
"""


@pytest.mark.parametrize("how", ["redacted", "as the harness is"])
def test_failing_evaluated_model_keeps_the_key(start: Callable[..., ModelServer], tmp_path: Path, how: str) -> None:
    server = start(lambda body, n: Answer(401, "who are you?"))
    done = subprocess.run(
        [sys.executable, "-c", EVALUATED, server.url, how],
        env={**os.environ, "OPENAI_API_KEY": KEY},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
    )
    assert "FAILED AS MEANT" in done.stdout, done.stderr
    assert server.requests[0][1]["Authorization"] == f"Bearer {KEY}"
    # the second case proves that the first one hides something
    assert (KEY in done.stdout + done.stderr) == (how != "redacted")
