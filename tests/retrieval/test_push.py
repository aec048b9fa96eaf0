"""Run folders pushed to the hub: what is sent, the card, and what is refused before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import constants

from mrag_eval.config import Agent, Judge, Prompt, Retrieval, TaskBlocks, validated
from mrag_eval.core import GivenPassage, RagDoc
from mrag_eval.datasets import Benchmark
from mrag_eval.platform import HubPlace, MragError, keep_address, keep_key
from mrag_eval.retrieval import Push, RunFolder, push_folder, repeats_questions
from mrag_eval.retrieval.saved import _hub_folder
from mrag_eval.retrieval.saved._hub_folder import run_folder_at
from mrag_eval.retrieval.saved._settings import fingerprint_of
from mrag_eval.retrieval.saved._terms import terms_of
from tests.retrieval.shared_folder import DOCS, FOUND, FREE, SETTINGS, write_folder
from tests.worlds.hub_server import TOKEN, Hub, serving

REPO = "org/rows"
TO = Push(HubPlace(REPO))
UNKNOWN = {"name": "my archive", "licence": None, "shareable": None}
CLOSED = {"name": "XRAG", "licence": "CC-BY-NC-4.0", "shareable": False}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """Yield an empty hub that this process may write to."""
    _hub_folder._opened.cache_clear()
    with serving() as running:
        running.inside(monkeypatch, tmp_path / "hf")
        yield running


def pushed(hub: Hub, folder: RunFolder, push: Push = TO) -> dict[str, bytes]:
    """Push a folder, and return the files of the dataset at the commit that is named."""
    place = push_folder(folder, push).place
    assert place.repo == REPO
    return hub.files(REPO, str(place.revision))


def test_a_folder_is_pushed_with_a_card_and_read_by_its_commit(hub: Hub, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "run")
    (tmp_path / "run" / "notes.txt").write_text("mine", "utf-8")
    done = push_folder(folder, TO)
    files = hub.files(REPO)
    assert set(files) == {".gitattributes", "README.md", "manifest.json", "t.jsonl", "t.trec"}
    assert (done.files, done.size) == (4, sum(map(len, files.values())))
    assert hub.repos[REPO].messages[str(done.place.revision)] == "Retrieved rows of t"
    there = run_folder_at(str(done.place))
    assert there.rows("t", there.entry_for("t", fingerprint_of(SETTINGS)), DOCS) == FOUND
    card = files["README.md"].decode()
    head = yaml.safe_load(card.split("---")[1])
    assert (head["license"], head["viewer"], "en" in head["language"]) == ("cc-by-sa-4.0", False, True)
    for part in (
        "retrieval.run_folder=hub:org/rows@COMMIT",
        "mode all, k 1",
        "the bridge archive, CC-BY-SA-4.0",
        "| 2 ",
    ):
        assert part in card
    assert fingerprint_of(SETTINGS)[:12] in card
    # nothing changes: no new commit
    assert push_folder(folder, TO).place == done.place


def test_branch_message_and_privacy_are_the_users(hub: Hub, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "run")
    done = push_folder(folder, replace(TO, revision="trial", message="second try", private=True))
    repo = hub.repos[REPO]
    assert (repo.private, repo.refs["trial"], repo.messages[repo.refs["trial"]]) == (
        True, done.place.revision, "second try"
    )  # fmt: skip
    assert set(repo.commits[repo.refs["main"]]) == {".gitattributes"}


def test_a_card_of_the_users_is_kept(hub: Hub, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "run")
    (tmp_path / "run" / "README.md").write_text("# Mine\n", "utf-8")
    assert pushed(hub, folder)["README.md"] == b"# Mine\n"


def test_half_an_upload_is_completed_by_the_next(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    hub.lfs_from = 60
    folder = write_folder(tmp_path / "run")
    sent: list[str] = []

    def breaks_off(method: str, path: str) -> int | None:
        sent.extend([path] if method == "PUT" else [])
        return 403 if len(sent) > 1 and method == "PUT" else None

    hub.refuse = breaks_off
    with pytest.raises(MragError) as caught:
        push_folder(folder, TO)
    assert caught.value.message.startswith(f"hub:{REPO}: ")
    assert "\n" not in caught.value.message
    assert "manifest.json" not in hub.files(REPO)
    half, hub.refuse = len(sent), lambda method, path: None
    arrived = {path.name for path in hub._blobs.iterdir()}
    assert {"manifest.json", "t.jsonl"} <= set(pushed(hub, folder))
    assert half > 1
    again = [path for method, path in hub.requests if method == "PUT"][half:]
    assert not {path.rpartition("/")[2] for path in again} & arrived


def test_a_dataset_with_other_tasks_does_not_lose_them(hub: Hub, tmp_path: Path) -> None:
    push_folder(write_folder(tmp_path / "run", "u"), TO)
    with pytest.raises(MragError, match=r"holds tasks that .*more lacks: u"):
        push_folder(write_folder(tmp_path / "more"), TO)
    both = write_folder(tmp_path / "run")
    assert {"t.jsonl", "u.jsonl"} <= set(pushed(hub, both))


def _asked(folder: Path) -> RunFolder:
    """Write a folder whose rows repeat their questions."""
    return write_folder(folder, found=[replace(row, queries=("When?", "Wann?")) for row in FOUND])


def _changed(folder: Path) -> RunFolder:
    found = write_folder(folder)
    (folder / "t.jsonl").write_text((folder / "t.jsonl").read_text("utf-8").replace("1890", "1891"), "utf-8")
    return found


def _unfinished(folder: Path) -> RunFolder:
    found = write_folder(folder)
    found.note("t", sha256=None)
    return found


def _settings(**retrieval: Any) -> dict[str, Any]:
    return {**SETTINGS, "retrieval": {**SETTINGS["retrieval"], **retrieval}}


REFUSED: dict[str, tuple[Callable[[Path], RunFolder], Push, str]] = {
    "nothing in it": (RunFolder, TO, "holds no retrieved rows"),
    "not finished": (_unfinished, TO, "the rows of task t are not complete"),
    "changed since": (_changed, TO, "t.jsonl is damaged"),
    "passages that may not be shared": (
        lambda folder: write_folder(folder, terms={"passages": CLOSED, "questions": FREE}),
        TO,
        "task t: its passages are those of XRAG, which may not be passed on (licence CC-BY-NC-4.0)",
    ),
    "a licence does not open them": (
        lambda folder: write_folder(folder, terms={"passages": CLOSED, "questions": FREE}),
        replace(TO, licence="CC0-1.0"),
        "its passages are those of XRAG",
    ),
    "passages of an unknown licence": (
        lambda folder: write_folder(folder, terms={"passages": UNKNOWN, "questions": FREE}),
        TO,
        "the licence of its passages (my archive) is not known",
    ),
    "of an earlier version": (lambda folder: write_folder(folder, terms={}), TO, "is not known"),
    "questions that may not be shared": (
        lambda folder: write_folder(
            folder, terms={"passages": FREE, "questions": CLOSED}, found=[replace(FOUND[0], queries=("x",)), FOUND[1]]
        ),
        TO,
        "its questions are those of XRAG",
    ),
    "a model of this machine": (
        lambda folder: write_folder(folder, settings=_settings(embedder="/srv/models/mine")),
        TO,
        "tasks.t.settings.retrieval.embedder is a path of this machine: /srv/models/mine",
    ),
    "a folder of the user": (
        lambda folder: write_folder(folder, found=[replace(FOUND[0], queries=(f"{Path.cwd()}/x",)), FOUND[1]]),
        TO,
        "t.jsonl, line 1: holds a path of this machine",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_may_not_be_pushed_is_refused_before_anything_is_sent(
    hub: Hub, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home" / "here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "home" / "here")
    make, push, message = REFUSED[what]
    with pytest.raises(MragError) as caught:
        push_folder(make(tmp_path / "run"), push)
    assert message in caught.value.message
    assert caught.value.next_step
    assert REPO not in hub.repos


def test_a_secret_is_not_pushed(hub: Hub, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "run", found=[replace(FOUND[0], queries=("the word is k1ngfisher",)), FOUND[1]])
    keep_key("k1ngfisher", "a test")
    with pytest.raises(MragError, match=r"t\.jsonl, line 1: holds a key of yours"):
        push_folder(folder, TO)
    assert REPO not in hub.repos
    assert all(TOKEN.encode() not in content for content in pushed(hub, write_folder(tmp_path / "other")).values())


@pytest.mark.parametrize("name", ["SOME_KEY", "some_token", "MY_SECRET", "DB_PASSWORD"])
def test_what_a_variable_named_as_a_key_holds_is_not_pushed_though_nothing_read_it(
    hub: Hub, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = f"0nly-in-{name}"
    monkeypatch.setenv(name, value)
    folder = write_folder(tmp_path / "run", found=[replace(FOUND[0], queries=(f"it is {value}",)), FOUND[1]])
    before = (tmp_path / "run" / "t.jsonl").read_bytes()
    with pytest.raises(MragError, match=r"t\.jsonl, line 1: holds a key of yours"):
        push_folder(folder, TO)
    assert REPO not in hub.repos
    # refused, and not rewritten
    assert (tmp_path / "run" / "t.jsonl").read_bytes() == before
    # a word that any text may have is none
    monkeypatch.setenv(name, "When")
    assert "t.jsonl" in pushed(
        hub, write_folder(tmp_path / "other", found=[replace(FOUND[0], queries=("When",)), FOUND[1]])
    )


def test_a_manifest_holds_no_secret_of_an_address(tmp_path: Path) -> None:
    address = keep_address("http://h/search?code=0nly-in-the-manifest")
    folder = write_folder(tmp_path / "run", settings=_settings(retriever={"url": address}))
    assert "0nly-in-the-manifest" not in (tmp_path / "run" / "manifest.json").read_text("utf-8")
    again = RunFolder(tmp_path / "run").tasks["t"]
    assert folder.begin("t", replace(folder.tasks["t"], settings=again.settings)) is not None


def test_without_a_token_or_with_a_wrong_one(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_folder(tmp_path / "run")
    monkeypatch.setenv("HF_TOKEN", "hf_wrong_token_0123456789")
    with pytest.raises(MragError, match="does not accept the token"):
        push_folder(folder, TO)
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(MragError, match="there is no token for the hub"):
        push_folder(folder, TO)


def test_a_licence_is_the_users_word_where_none_is_known(hub: Hub, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "run", terms={"passages": UNKNOWN, "questions": UNKNOWN})
    card = pushed(hub, folder, replace(TO, licence="CC-BY-4.0"))["README.md"].decode()
    assert "license: cc-by-4.0" in card
    assert "my archive, CC-BY-4.0" in card


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"rerank": {"kind": "api", "url": "http://ranker/v1"}}, "rerank.url=http://ranker/v1"),
        ({"retriever": {"url": "http://ranker/v1"}}, "retriever.url=http://ranker/v1"),
        ({"embedder": {"model": "m", "base_url": "http://h/v1"}}, "embedder.base_url=http://h/v1"),
        ({"embedder": "openai:m@http://h/v1"}, "embedder=openai:m@http://h/v1"),
        ({"embedder": "intfloat/multilingual-e5-small"}, None),
    ],
)
def test_an_address_is_shared_and_said(settings: dict[str, Any], key: str | None, hub: Hub, tmp_path: Path) -> None:
    """By its form, whatever the key is called."""
    folder = write_folder(tmp_path / "run", settings=_settings(**settings))
    said = f"manifest.json names an address, which everybody can read: retrieval.{key}"
    assert push_folder(folder, TO).notes == (() if key is None else (said,))


@pytest.mark.parametrize(
    ("mode", "repeats"), [("all", False), ("trag", True), ("coral", True), ("given", False), ("qlang", False)]
)
def test_rows_that_will_repeat_questions_are_known_beforehand(mode: str, repeats: bool) -> None:
    assert repeats_questions(validated(Retrieval, {"mode": mode}, "test")) is repeats


WIKIPEDIA = {"de": "Wikimedia dump, dewiki-20260601", "en": "KILT, Wikipedia of 2019-08-01, x"}


@pytest.mark.parametrize(
    ("data", "retrieval", "documents", "passages", "questions"),
    [
        ({"benchmark": "demo"}, {"mode": "all"}, {}, ("Apache-2.0", True), True),
        ({"benchmark": "mkqa"}, {"mode": "all", "corpus": "/x/wiki"}, WIKIPEDIA, ("CC-BY-SA-4.0", True), True),
        ({"benchmark": "xor_tydi"}, {"mode": "all", "corpus": "wiki"}, WIKIPEDIA, ("CC-BY-SA-4.0", True), False),
        ({"benchmark": "mkqa"}, {"mode": "all", "corpus": "wiki"}, {**WIKIPEDIA, "fr": "ours"}, (None, None), True),
        ({"benchmark": "mkqa"}, {"mode": "all", "corpus": "wiki"}, {}, (None, None), True),
        (
            {"benchmark": "demo"},
            {"mode": "all", "kind": "precomputed", "run": "/x/found.jsonl"},
            {},
            (None, None),
            True,
        ),
        ({"benchmark": "xrag"}, {"mode": "given"}, {}, (None, False), False),
        ({"benchmark": "jsonl"}, {"mode": "all"}, {}, (None, None), None),
        ({"benchmark": "xrag"}, {"mode": "oracle", "corpus": "wiki"}, WIKIPEDIA, (None, False), False),
    ],
)
def test_terms_of_a_task(data: Any, retrieval: Any, documents: Any, passages: Any, questions: Any) -> None:
    docs = [RagDoc("q", "Wo?", "de", (), given_passages=(GivenPassage("p", "en", "x", is_gold=True),))]
    block = validated(Retrieval, retrieval, "test")
    blocks = TaskBlocks(retrieval=block, agent=Agent(), prompt=Prompt(), judge=Judge(), data=data, metrics=())
    terms = terms_of(blocks, Benchmark("x", docs), documents)
    if passages[1] is not False:
        assert terms["passages"]["licence"] == passages[0]
    assert terms["passages"]["shareable"] is passages[1]
    assert terms["questions"]["shareable"] is questions
    assert "/x" not in json.dumps(terms)
