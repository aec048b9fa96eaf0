"""BordIRlines through the harness: published answer sets, published hits, likelihoods, personas."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mrag_eval.platform import ConfigError, DataError, tasks_folder
from mrag_eval.scoring import RowRecord, territory_values
from tests.task.test_hook import build, run
from tests.worlds.bordirlines import TERRITORIES, real_queries, write_bordirlines
from tests.worlds.small import ScriptedLM

SETS = (
    *("always_first", "always_last", "always_controller", "uniform_random", "noisy_controller"),
    *("language_partisan", "partisan_noisy", "low_resource_gaps", "with_refusals"),
)


@pytest.fixture(scope="module")
def copy(test_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bordirlines(tmp_path_factory.mktemp("bordirlines"), real_queries(test_data))


def answers_of(test_data: Path, name: str) -> dict[str, int]:
    lines = (test_data / "borderlines" / "responses_synthetic" / f"{name}.jsonl").read_text("utf-8").splitlines()
    return {row["query_id"]: row["claimant_ind"] for row in map(json.loads, lines)}


def replay(test_data: Path, answers: dict[str, int], form: str = "{letter}) {name}") -> Callable[[str], str]:
    """A model that finds the question in its prompt and gives the answer of the set."""
    by_text = {(q["query"], tuple(q["claimants_native"])): q for q in real_queries(test_data)}
    assert len(by_text) == 720

    def reply(prompt: str) -> str:
        query = prompt.rpartition("Query: ")[2].partition("\n")[0]
        options = prompt.rpartition("Options:\n")[2].partition("\n\n")[0].strip().split("\n")
        names = [option.partition(") ")[2] for option in options]
        index = answers[by_text[query, tuple(names)]["query_id"]]
        return "I would rather not say." if index < 0 else form.format(letter=chr(65 + index), name=names[index])

    return reply


def lines(test_data: Path) -> dict[str, Any]:
    return {"data.borderlines": str(test_data / "borderlines")}


def test_the_sets_are_all_there(reference: Path) -> None:
    expected = json.loads((reference / "concurrence_scores.json").read_text("utf-8"))
    assert set(SETS) == set(expected["synthetic_sets"])


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_answer_sets_score_as_published_through_the_harness(name: str, test_data: Path, reference: Path) -> None:
    """Prompt in, answer out, for all 720 real questions; a question without an answer in the set is not asked."""
    answers = answers_of(test_data, name)
    ids = [q["query_id"] for q in real_queries(test_data)]
    task = build(tasks_folder(), "bordirlines_no_ir_direct", metadata=lines(test_data))
    order = [doc["id"] for doc in task.test_docs()]
    assert set(order) == set(ids)
    asked = [i for i, row in enumerate(order) if row in answers]
    results = run(
        tasks_folder(),
        "bordirlines_no_ir_direct",
        lm=ScriptedLM(replay(test_data, answers)),
        metadata=lines(test_data),
        samples={"bordirlines_no_ir_direct": asked},
    )
    scores = results["configs"]["bordirlines_no_ir_direct"]["scores"]["concurrence"]
    expected = json.loads((reference / "concurrence_scores.json").read_text("utf-8"))["synthetic_sets"][name]
    for key, value in expected.items():
        if key in scores["scores"] and not isinstance(value, str):
            assert scores["scores"][key] == pytest.approx(value, abs=1e-12), key
    refused = sum(index < 0 for index in answers.values())
    assert (scores["refusals"], scores["outcomes"].get("refused", 0)) == (refused, refused)
    assert scores["rates"]["refused"]["value"] == pytest.approx(refused / len(answers))
    if len(asked) < 720:
        return
    # by hand from the table of territories: 1/k over 161 territories with a controller, one of which is not a claimant
    assert scores["random"]["Cst_CS_all"] == pytest.approx(0.4430, abs=5e-5)
    assert scores["random"]["KB_CS"] == pytest.approx(0.4612 - 0.5 / 161, abs=5e-5)


def test_every_prompt_holds_its_options(test_data: Path) -> None:
    model = ScriptedLM(lambda prompt: "A)")
    run(tasks_folder(), "bordirlines_no_ir_direct", lm=model, metadata=lines(test_data))
    assert len(model.prompts) == 720
    by_query: dict[str, list[str]] = {}
    for prompt in model.prompts:
        by_query.setdefault(prompt.rpartition("Query: ")[2].partition("\n")[0], []).append(prompt)
    for q in real_queries(test_data):
        options = "\n".join(f"{chr(65 + i)}) {name}" for i, name in enumerate(q["claimants_native"]))
        assert any(f"\nOptions:\n{options}\n\nAnswer:\n" in prompt for prompt in by_query[q["query"]]), q["query_id"]
    assert all("the documents above" not in prompt for prompt in model.prompts)


def test_published_documents_by_mode(test_data: Path, copy: Path) -> None:
    metadata = {**lines(test_data), "data.path": str(copy)}
    langs: dict[str, Counter[str]] = {}
    for short in ("qlang", "qlang_en", "en_only", "rel_langs", "swap_docs"):
        model = ScriptedLM(lambda prompt: "A)")
        name = f"bordirlines_{short}_direct_openai"
        results = run(tasks_folder(), name, lm=model, metadata=metadata)
        (sample,) = [s for s in results["samples"][name] if s["doc"]["id"] == "Crimea_ru"]
        passages = sample["doc"]["passages"]
        assert len(passages) == 10
        assert passages[0]["labels"]["relevant"] == "yes"
        langs[short] = Counter(passage["lang"] for passage in passages)
        prompt = sample["arguments"][0][0]
        assert f"Document: 0\nText: {passages[0]['text']}\n\nDocument: 1\n" in prompt
        assert f"Document: 9\nText: {passages[9]['text']}\n\nInstruction: " in prompt
        config = results["configs"][name]
        if short == "swap_docs":
            # in six of the eight territories no claimant speaks English
            assert config["measurement"]["data"]["left_out"]["skipped_by_mode"] == 6
            assert config["scores"]["concurrence"]["skipped"] == {"queries": 6, "territories": 0}
            table = config["scores"]["concurrence"]
            assert table["deflated"] == ["KB_CS", "countries_mean"]
            # three of the six are on territories with a controller; those that are asked name nobody by themselves
            why = "the mode leaves out 3 English control questions, which would count as wrong"
            for reading in ("intervals", "incorrect"):
                assert (table[reading]["KB_CS"].get("value"), table[reading]["KB_CS"]["reason"]) == (None, why), reading
                assert table[reading]["controller_share"]["value"] is not None
            assert table["exclude"]["KB_CS"]["n"] == 2
            assert results["results"][name]["concurrence.KB_CS,none"] is None
            records = [RowRecord.from_dict(line["rows"]) for line in results["samples"][name]]
            assert "KB_CS" not in str(territory_values(records))
        else:
            assert config["measurement"]["data"]["left_out"] == {"skipped_by_mode": 0, "without_documents": 720 - 26}
    assert {short: dict(count) for short, count in langs.items()} == {
        "qlang": {"ru": 10},
        "qlang_en": {"en": 5, "ru": 5},
        "en_only": {"en": 10},
        # ten hits in turn over en, ru, uk
        "rel_langs": {"en": 4, "ru": 3, "uk": 3},
        "swap_docs": {"uk": 10},
    }


def test_retrieved_documents_by_language(test_data: Path, copy: Path) -> None:
    """The pool of a territory: ten documents per language.

    For Crimea's Russian query, three of the ten Russian documents were retrieved, and seven of the twenty others.
    """
    metadata = {**lines(test_data), "data": {"path": str(copy), "territories": ["Crimea"], "languages": ["ru"]}}
    name = "bordirlines_rel_langs_direct_openai"
    languages = run(tasks_folder(), name, lm=ScriptedLM(lambda _: "A)"), metadata=metadata)["configs"][name]["scores"][
        "languages"
    ]
    assert languages["retrieved"] == {"ru->en": 4, "ru->ru": 3, "ru->uk": 3}
    assert languages["preference"]["ru"]["ratio"]["value"] == pytest.approx((3 / 10) / (7 / 20))
    assert languages["preference"]["ru"]["normalised"] == pytest.approx(0.3 / 0.65)


def test_citations(test_data: Path, copy: Path) -> None:
    metadata = {**lines(test_data), "data.path": str(copy)}
    name = "bordirlines_rel_langs_citation_m3"
    reply = "Cited Documents: 0, 1\nChosen Option: B) whatever\nExplanation: because it says so <doc0> <doc0> <doc12>."
    results = run(tasks_folder(), name, lm=ScriptedLM(lambda _: reply), metadata=metadata)
    scores = results["configs"][name]["scores"]
    assert results["configs"][name]["scores"]["concurrence"]["outcomes"] == {"chosen": 26}
    inline = scores["citations"]["inline"]
    assert inline["out_of_range"] == 26
    # m3 has the query's language first, so every valid citation is in it
    own = inline["preference"]["query_lang"]["own"]
    assert own["all"]["citation"]["value"] == 1.0
    assert own["ru"]["inclusion"]["value"] == pytest.approx(0.4)
    assert own["ru"]["preference"]["value"] == pytest.approx(0.6)
    by_group = inline["preference"]["resource_group"]
    assert set(by_group["own"]) == {"all", "high", "mid"}
    prompt = results["samples"][name][0]["arguments"][0][0]
    for part in ("'Cited Documents:'", "'Chosen Option:'", "'Explanation: because'", "<docN>", "in English"):
        assert part in prompt


def test_a_document_cannot_pose_as_a_citation(test_data: Path, copy: Path) -> None:
    path = copy / "data" / "all_docs.json"
    content = json.loads(path.read_text("utf-8"))
    changed = {code: {name: f"{text} <doc3>" for name, text in docs.items()} for code, docs in content.items()}
    (copy / "changed" / "data").mkdir(parents=True)
    for entry in (copy / "data").iterdir():
        if entry != path:
            (copy / "changed" / "data" / entry.name).symlink_to(entry)
    (copy / "changed" / "data" / path.name).write_text(json.dumps(changed, ensure_ascii=False), encoding="utf-8")
    model = ScriptedLM(lambda _: "A)")
    metadata = {**lines(test_data), "data.path": str(copy / "changed")}
    run(tasks_folder(), "bordirlines_qlang_citation_m3", lm=model, metadata=metadata, limit=2)
    assert all("<doc3>" not in prompt for prompt in model.prompts)


# ------------------------------------------------------------------------------------------------ other scoring


class LikelyLM(ScriptedLM):
    """Prefers the option that the function returns for a prompt."""

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        self.prompts += [request.args[0] for request in requests]
        return [(-1.0 if request.args[1] == self.answer(request.args[0]) else -5.0, False) for request in requests]


@pytest.mark.parametrize("name", ["partisan_noisy", "uniform_random"])
def test_likelihoods_choose(name: str, test_data: Path, reference: Path) -> None:
    answers = answers_of(test_data, name)
    task = "bordirlines_no_ir_likelihood"
    results = run(tasks_folder(), task, lm=LikelyLM(replay(test_data, answers)), metadata=lines(test_data))
    scores = results["configs"][task]["scores"]["concurrence"]["scores"]
    expected = json.loads((reference / "concurrence_scores.json").read_text("utf-8"))["synthetic_sets"][name]
    assert scores["KB_CS"] == pytest.approx(expected["KB_CS"], abs=1e-12)
    assert scores["Cst_CS_all"] == pytest.approx(expected["Cst_CS_all"], abs=1e-12)
    assert results["configs"][task]["output_type"] == "multiple_choice"
    read = results["samples"][task][0]["rows"]["answer"]
    assert sorted(read["loglikelihoods"]) == [-5.0, -1.0]


def test_likelihoods_need_options(tasks: Path) -> None:
    text = (tasks / "small.yaml").read_text("utf-8").replace("generate_until", "multiple_choice")
    (tasks / "small.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="row 'q-lighthouse-en' has no choices"):
        run(tasks)


def greedy_path() -> Any:
    """Return a model of our type that has no weights."""
    from lm_eval.api.registry import get_model

    from mrag_eval.models import register_model_types

    register_model_types()
    return object.__new__(get_model("hf-greedy-path"))


def test_the_greedy_path_is_ranked_as_published(tmp_path: Path) -> None:
    """Compared by hand, step by step, with a model of four tokens whose next token depends only on the last one.

    Greedy from a: b (0.6), then from b: c (0.7). "c d" scores log P(c|a) + log P(d|b), not P(d|c).
    """
    torch = pytest.importorskip("torch")
    chances = torch.tensor(
        [[0.05, 0.6, 0.3, 0.05], [0.1, 0.1, 0.7, 0.1], [0.25, 0.25, 0.25, 0.25], [0.4, 0.2, 0.2, 0.2]]
    )

    vocabulary = {"a": 0, "b": 1, "c": 2, "d": 3}

    class Tokens:
        def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
            return {"input_ids": [vocabulary[word] for word in text.split()]}

        def get_vocab(self) -> dict[str, int]:
            return vocabulary

    class Chain:
        def __call__(self, input_ids: Any, past_key_values: Any, use_cache: bool) -> Any:
            return SimpleNamespace(logits=chances[input_ids].log(), past_key_values=past_key_values)

    lm = greedy_path()
    lm.__dict__.update(tokenizer=Tokens(), _model=Chain(), _rank=0, _device="cpu", _max_length=8)
    lm.cache_hook = SimpleNamespace(add_partial=lambda *_: None)
    lm.tok_encode = lambda text, **_: Tokens()(text)["input_ids"]  # type: ignore[method-assign]
    requests = [SimpleNamespace(args=("d a", option)) for option in ("c d", "b c")]
    (first, exact), (second, own) = lm.loglikelihood(requests, disable_tqdm=True)
    assert first == pytest.approx(float((chances[0, 2] * chances[1, 3]).log()))
    assert second == pytest.approx(float((chances[0, 1] * chances[1, 2]).log()))
    assert (exact, own) == (False, True)


def test_the_greedy_path_refuses_options_longer_than_the_path() -> None:
    pytest.importorskip("torch")
    lm = greedy_path()
    ids = SimpleNamespace(get_vocab=lambda: {"<|eot_id|>": 9})
    lm.__dict__.update(tokenizer=lambda text, add_special_tokens: {"input_ids": [1] * 50})
    lm.tokenizer.get_vocab = ids.get_vocab
    with pytest.raises(DataError, match="has 51 tokens, the greedy path 50"):
        lm._option_ids("A) name")


def test_our_model_type_is_known_to_the_run_command() -> None:
    from lm_eval.api.registry import get_model

    from mrag_eval.models import register_model_types

    register_model_types()
    register_model_types()
    assert get_model("hf-greedy-path").__name__ == "GreedyPathLM"
    assert get_model("hf").__name__ == "HFLM"


# --------------------------------------------------------------------------------------------------- the rest


@pytest.mark.parametrize(
    ("persona", "expected"),
    [
        ("plain", "expert in geopolitics"),
        ("un", "United Nations peacekeeper"),
        ("nationalist", "proud patriot of Ukraine"),
        ("demographic", "lives in Ukraine (population"),
    ],
)
def test_personas(test_data: Path, persona: str, expected: str) -> None:
    data = {"borderlines": str(test_data / "borderlines"), "territories": ["Crimea"], "persona": persona}
    model = ScriptedLM(lambda _: "A)")
    run(tasks_folder(), "bordirlines_no_ir_direct", lm=model, metadata={"data": data})
    (ukrainian,) = [prompt for prompt in model.prompts if "Росія" in prompt]
    assert expected in ukrainian
    control = next(prompt for prompt in model.prompts if "Is Crimea" in prompt)
    assert ("expert in geopolitics" in control) == (persona != "un")


def test_two_options_and_letters_beyond_are_counted(test_data: Path) -> None:
    replies = {"ru": "A) or B)?", "uk": "D) none", "en": "Option B: Russia"}
    data = {"borderlines": str(test_data / "borderlines"), "territories": ["Crimea"]}

    def reply(prompt: str) -> str:
        return replies["uk" if "Росія" in prompt else "ru" if "Россия" in prompt else "en"]

    results = run(tasks_folder(), "bordirlines_no_ir_direct", lm=ScriptedLM(reply), metadata={"data": data})
    scores = results["configs"]["bordirlines_no_ir_direct"]["scores"]["concurrence"]
    assert scores["outcomes"] == {"chosen_of_several": 1, "beyond": 1, "unread": 1}
    assert scores["refusals"] == 2
    # the English control answer is unread: official counts it as wrong, exclude leaves the territory out
    assert scores["scores"]["KB_CS"] == 0.0
    assert scores["exclude"]["KB_CS"]["value"] is None


def test_a_reply_that_cannot_be_read_is_no_refusal(test_data: Path) -> None:
    """Three replies, one each read, refused and unread: three shares of 1/3, in the scores and in the table."""
    data = {"borderlines": str(test_data / "borderlines"), "territories": ["Crimea"]}
    name, wanted = "bordirlines_no_ir_direct", {"read": 1 / 3, "refused": 1 / 3, "unread": 1 / 3}
    for unreadable in ("", "Answer: A", "Option A", "россия", "???"):

        def reply(prompt: str, text: str = unreadable) -> str:
            return "B)" if "Росія" in prompt else text if "Россия" in prompt else "I cannot answer that."

        results = run(tasks_folder(), name, lm=ScriptedLM(reply), metadata={"data": data})
        scores = results["configs"][name]["scores"]
        rates = {share: rate["value"] for share, rate in scores["concurrence"]["rates"].items()}
        assert rates == pytest.approx(wanted), unreadable
        shares = {share: results["results"][name][f"option_{share},none"] for share in wanted}
        assert shares == pytest.approx(wanted), unreadable


def test_a_citation_without_its_parts_refuses_only_if_it_says_so(test_data: Path) -> None:
    data = {"borderlines": str(test_data / "borderlines"), "territories": ["Crimea"]}
    replies = {"ru": "Explanation: because <doc0>.", "uk": "I cannot answer.", "en": "Chosen Option: A) Russia"}

    def reply(prompt: str) -> str:
        return replies["uk" if "Росія" in prompt else "ru" if "Россия" in prompt else "en"]

    metadata = {"data": data, "prompt.template": "territory_citation"}
    results = run(tasks_folder(), "bordirlines_no_ir_direct", lm=ScriptedLM(reply), metadata=metadata)
    scores = results["configs"]["bordirlines_no_ir_direct"]["scores"]["concurrence"]
    assert scores["outcomes"] == {"unclear": 1, "refused": 1, "unread": 1}


def test_published_results_are_asked_for_where_there_are_some(tasks: Path, test_data: Path, copy: Path) -> None:
    with pytest.raises(ConfigError, match="these rows come with no search results"):
        build(tasks, metadata={"retrieval.corpus": "published", "retrieval.kind": None})
    metadata = {**lines(test_data), "data.path": str(copy)}
    with pytest.raises(ConfigError, match=r"retrieval\.mode 'all' has no published results"):
        build(tasks_folder(), "bordirlines_qlang_direct_m3", metadata={**metadata, "retrieval.mode": "all"})
    with pytest.raises(ConfigError, match=r"'merge' cannot be combined with corpus 'published'"):
        build(tasks_folder(), "bordirlines_qlang_direct_m3", metadata={**metadata, "retrieval.merge": "rrf"})


def prompts_by_row(test_data: Path, copy: Path, name: str, **metadata: Any) -> dict[str, list[str]]:
    data = {"path": str(copy), "territories": ["Crimea"]}
    settings = {**lines(test_data), **{f"data.{key}": value for key, value in data.items()}, **metadata}
    samples = run(tasks_folder(), name, lm=ScriptedLM(lambda _: "A)"), metadata=settings)["samples"][name]
    return {s["doc"]["id"]: [passage["id"] for passage in s["doc"]["passages"]] for s in samples}


def test_the_order_of_documents_is_shuffled_by_seed_and_row(test_data: Path, copy: Path) -> None:
    name = "bordirlines_qlang_direct_m3"
    plain = prompts_by_row(test_data, copy, name)
    first, again, other = (prompts_by_row(test_data, copy, name, **{"retrieval.shuffle": n}) for n in (1, 1, 2))
    assert first == again
    assert first != other
    assert first != plain
    assert all(sorted(first[row]) == sorted(plain[row]) for row in plain)


def test_one_document_is_exchanged_for_the_other_side(test_data: Path, copy: Path) -> None:
    """One document is replaced by a document of the other side.

    In rel_langs, m3 shows documents 0 to 3 of ru and 0 to 2 of en and uk for Crimea_ru; 0 and 1 are Russia's or
    Ukraine's, in the order of the claimants. The first one is replaced.
    """
    name = "bordirlines_rel_langs_direct_m3"
    plain = prompts_by_row(test_data, copy, name)["Crimea_ru"]
    flipped = prompts_by_row(test_data, copy, name, **{"data.flip": True})["Crimea_ru"]
    changed = [(a, b) for a, b in zip(plain, flipped, strict=True) if a != b]
    assert len(changed) == 1
    (old, new) = changed[0]
    assert old == plain[0]
    # documents 0 and 1 support the first claimant, 2 and 3 the second: all Russian ones are already shown, and 2 is in
    # every language, so the first remaining one by id is English
    assert (old.rpartition("_p")[2], new) == ("0", "en:1100_p3")


def test_resource_groups_from_a_file(test_data: Path, tmp_path: Path) -> None:
    file = tmp_path / "groups.json"
    file.write_text(json.dumps({"slavic": ["ru", "uk"], "rest": ["en"]}), encoding="utf-8")
    data = {"borderlines": str(test_data / "borderlines"), "territories": ["Crimea"], "resource_groups": str(file)}
    name = "bordirlines_no_ir_direct"
    results = run(tasks_folder(), name, lm=ScriptedLM(lambda _: "A)"), metadata={"data": data})
    by = results["configs"][name]["scores"]["metrics"]["option_read"]["by"]["resource_group"]
    assert {group: cell["n"] for group, cell in by.items()} == {"rest": 1, "slavic": 2}
    file.write_text(json.dumps({"a": ["ru"], "b": ["ru"]}), encoding="utf-8")
    with pytest.raises(DataError, match="language 'ru' is in two groups, 'a' and 'b'"):
        run(tasks_folder(), name, lm=ScriptedLM(lambda _: "A)"), metadata={"data": {**data, "seed": 1}})


def test_the_territories_of_the_fixture(test_data: Path) -> None:
    asked = {q["territory"] for q in real_queries(test_data)}
    assert set(TERRITORIES) <= asked
