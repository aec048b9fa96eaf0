"""Write the task YAML of the benchmarks with many leaves: ``python scripts/write_tasks.py [--check]``.

The files under ``tasks/`` are committed; this script is where their tables live. ``--check`` writes nothing and exits
with 1 if a file differs from what would be written.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from mrag_eval.core import CORAL_POOL
from mrag_eval.core._languages import CORAL_TIERS
from mrag_eval.datasets._blend import COUNTRIES
from mrag_eval.datasets._click import CATEGORY_SIZES
from mrag_eval.datasets._mkqa import LANGUAGES as MKQA_LANGUAGES
from mrag_eval.datasets._xor_tydi import LANGUAGES as XOR_LANGUAGES
from mrag_eval.datasets._xquad import LANGUAGES as XQUAD_LANGUAGES
from mrag_eval.datasets._xrag import LANGUAGES as XRAG_LANGUAGES

TASKS = Path(__file__).resolve().parent.parent / "tasks"
HEADER = "# written by scripts/write_tasks.py\n"
VERSION = "1.0"

# CORAL, its baselines (section 4.2) and its ablations (Tables 2 and 3): the part of the task name -> the IR mode. BLEnD
# has no tRAG: its questions are English.
_BASELINES = {"norag": "no_ir", "monorag": "qlang", "trag": "trag", "multirag": "all", "crossrag": "crossrag"}
# "ownen", not "own_en": that is the ablation "own" on the English questions.
_ABLATIONS = {"own": "own", "ownen": "own+en", "coral_norewrite": "coral"}
CLICK_MODES = {**_BASELINES, "coral": "coral", **_ABLATIONS}
BLEND_MODES = {short: mode for short, mode in CLICK_MODES.items() if short != "trag"}
# Two-letter country names would read as language codes (uk: Ukrainian).
_SPELLED_OUT = {"US": "united_states", "UK": "united_kingdom"}

Files = dict[str, str]


def base(
    *,
    benchmark: str,
    retrieval: Mapping[str, object],
    template: str,
    metrics: Sequence[str],
    max_gen_toks: int,
    judge: Mapping[str, object] | None = None,
    system: str | None = None,
) -> str:
    """The file that the leaves of a benchmark include: everything but what they differ in."""
    blocks = f"  system: {system}\n" if system else ""
    blocks += f"judge:\n{_indented(judge)}\n" if judge else ""
    return f"""{HEADER}class: !function mrag_eval.task.RagTask
output_type: generate_until
test_split: test
num_fewshot: 0
metric_list: []
generation_kwargs:
  until: []
  max_gen_toks: {max_gen_toks}
  temperature: 0.0
  do_sample: false
data:
  benchmark: {benchmark}
retrieval:
{_indented(retrieval)}
prompt:
  template: {template}
{blocks}metrics:
{_listed(metrics)}
metadata:
  version: {VERSION}
"""


def leaf(include: str, task: str, data: Mapping[str, object], retrieval: str = "") -> str:
    """One task: the base it includes, its part of the benchmark, and how its ``retrieval`` differs from the base's."""
    block = f"data:\n{_indented(data)}\n" if data else ""
    return f"{HEADER}include: {include}\ntask: {task}\n{block}{retrieval}"


def group(name: str, members: Sequence[str], metrics: Mapping[str, bool]) -> str:
    """A group; ``metrics`` maps a metric to whether its mean is weighted by rows (else: the plain mean over leaves).

    A group includes no base: with ``class`` in it the harness would take the group for a task.
    """
    aggregated = "".join(
        f"  - metric: {metric}\n    aggregation: mean\n    weight_by_size: {str(weighted).lower()}\n"
        for metric, weighted in metrics.items()
    )
    averages = f"aggregate_metric_list:\n{aggregated}" if metrics else ""
    return f"{HEADER}group: {name}\ntask:\n{_listed(members)}\n{averages}metadata:\n  version: {VERSION}\n"


# The loop on a task of open questions: CORAL's prompt for short answers, which lets the model reason first.
_OPEN_CORAL = """retrieval:
  mode: coral
  rerank: null
prompt:
  template: short_answer_line
  system: null
generation_kwargs:
  until: []
  max_gen_toks: 4096
  temperature: 0.0
  do_sample: false
"""


def _indented(block: Mapping[str, object]) -> str:
    return "\n".join(f"  {key}: {_scalar(value)}" for key, value in block.items())


def _listed(names: Sequence[str]) -> str:
    return "\n".join(f"  - {name}" for name in names)


def _scalar(value: object) -> str:
    # quoted, since YAML reads a bare `no` as false
    return f'"{value}"' if isinstance(value, str) and len(value) == 2 else str(value)


# Retrieval policies (The Cross-Lingual Cost, section 4 and A.5; the last two are ours) -> the retrieval block. XQuAD's
# parallel texts are the translations, which makes them perfect.
XQUAD_POLICIES = {
    "direct": "retrieval:\n  mode: all\n",
    "gold_lang": "retrieval:\n  mode: gold_lang\n",
    "balanced": "retrieval:\n  mode: balanced\n",
    "balanced_weighted": "retrieval:\n  mode: balanced_weighted\n",
    "translation": "retrieval:\n  mode: translation\n  translator:\n    backend: table\n",
    "zscore": "retrieval:\n  mode: all\n  merge: zscore\n",
    "rank_norm": "retrieval:\n  mode: all\n  merge: rank_norm\n",
}


def xquad_rag() -> Files:
    """XQuAD with paragraphs and questions in languages drawn at random: a leaf for each language of the question."""
    metrics = ("char3gram_recall", "match", "correct_language", "hit@20", "mrr@20", "ndcg@20")
    files = {
        "_xquad_rag_yaml": base(
            benchmark="xquad",
            retrieval={"mode": "all", "k": 5, "depth": 20, "corpus": "benchmark", "query_text": "question"},
            template="short_answer",
            metrics=metrics,
            max_gen_toks=128,
        ),
        "xquad_rag_pooled.yaml": leaf("_xquad_rag_yaml", "xquad_rag_pooled", {}),
    }
    # what the critic keeps is no list of 20
    listed = f"metrics:\n{_listed([metric for metric in metrics if '@' not in metric])}\n"
    files["xquad_rag_coral.yaml"] = leaf("_xquad_rag_yaml", "xquad_rag_coral", {}, f"{_OPEN_CORAL}{listed}")
    names = []
    for code in XQUAD_LANGUAGES:
        names.append(f"xquad_rag_{code}")
        files[f"{names[-1]}.yaml"] = leaf("_xquad_rag_yaml", names[-1], {"question_language": code})
    files["_xquad_rag.yaml"] = group("xquad_rag", names, dict.fromkeys(metrics, False))
    for policy, retrieval in XQUAD_POLICIES.items():
        name = f"xquad_policies_{policy}"
        files[f"policies/{name}.yaml"] = leaf("../_xquad_rag_yaml", name, {}, retrieval)
    members = [f"xquad_policies_{policy}" for policy in XQUAD_POLICIES]
    # no mean over policies: it would say nothing
    files["policies/_xquad_policies.yaml"] = (
        f"{HEADER}group: xquad_policies\ntask:\n{_listed(members)}\nmetadata:\n  version: {VERSION}\n"
    )
    return files


def _coral_bases(benchmark: str, metrics: Sequence[str], modes: Mapping[str, str]) -> Files:
    """The base of a benchmark as CORAL runs it, and one base a mode on top of it."""
    files = {
        f"_{benchmark}_yaml": base(
            benchmark=benchmark,
            retrieval={"k": 5, "corpus": "wikipedia", "query_text": "question+options"},
            template="multiple_choice",
            metrics=metrics,
            max_gen_toks=4096,
        )
    }
    pool = f"[{', '.join(f'{chr(34)}{code}{chr(34)}' for code in CORAL_POOL)}]"
    for short, mode in modes.items():
        agent = {"preset": "no_rewriting"} if short == "coral_norewrite" else {}
        block = f"agent:\n{_indented({**agent, 'pool': pool})}\n" if mode == "coral" else ""
        files[f"_{benchmark}_{short}_yaml"] = (
            f"{HEADER}include: _{benchmark}_yaml\nretrieval:\n{_indented({'mode': mode})}\n{block}"
        )
    # the comparison and the ablations: their tasks have no score in common
    compared = [f"{benchmark}_{short}" for short in modes if short not in _ABLATIONS]
    ablated = [f"{benchmark}_{short}" for short in modes if short in ("norag", "multirag", "coral", *_ABLATIONS)]
    files[f"_{benchmark}_coral_suite.yaml"] = group(f"{benchmark}_coral_suite", compared, {})
    files[f"_{benchmark}_coral_ablations.yaml"] = group(f"{benchmark}_coral_ablations", ablated, {})
    return files


def click() -> Files:
    """CLIcK Culture: a leaf for each mode and subject; a mode's score is the mean over questions."""
    files = _coral_bases("click", ("acc", "choice_parsed"), CLICK_MODES)
    for short in CLICK_MODES:
        names = []
        for category in CATEGORY_SIZES:
            names.append(f"click_{short}_{category}")
            files[f"{short}/{names[-1]}.yaml"] = leaf(f"../_click_{short}_yaml", names[-1], {"category": category})
        files[f"{short}/_click_{short}.yaml"] = group(f"click_{short}", names, {"acc": True, "choice_parsed": True})
    return files


def blend() -> Files:
    """BLEnD: leaves by source language in three tiers (the score: plain mean over languages), and by country."""
    files = _coral_bases("blend", ("acc", "acc_micro", "choice_parsed"), BLEND_MODES)
    averaged = {"acc": False, "acc_micro": True, "choice_parsed": True}
    for short in BLEND_MODES:
        prefix, include = f"blend_{short}", f"../_blend_{short}_yaml"
        for tier, codes in CORAL_TIERS.items():
            names = [f"{prefix}_{code}" for code in codes]
            for name, code in zip(names, codes, strict=True):
                files[f"{short}/{name}.yaml"] = leaf(include, name, {"language": code})
            files[f"{short}/_{prefix}_{tier}.yaml"] = group(f"{prefix}_{tier}", names, averaged)
        tiers = [f"{prefix}_{tier}" for tier in CORAL_TIERS]
        files[f"{short}/_{prefix}.yaml"] = group(prefix, tiers, averaged)
        if short in _ABLATIONS:
            continue
        names = []
        for country in COUNTRIES:
            names.append(f"{prefix}_{_SPELLED_OUT.get(country, country.lower())}")
            # the full name: a two-letter one is a country here
            files[f"{short}/countries/{names[-1]}.yaml"] = leaf(f"../{include}", names[-1], {"country": country})
        files[f"{short}/countries/_{prefix}_countries.yaml"] = group(f"{prefix}_countries", names, averaged)
    return files


def blend_saq() -> Files:
    """BLEnD's short answers: a leaf for each mode and country; a mode's score is the plain mean over countries."""
    metrics = ("sem_b", "sem_w", "sem_lemma_rule")
    files = {
        "_blend_saq_yaml": base(
            benchmark="blend_saq",
            retrieval={"k": 5, "corpus": "wikipedia", "query_text": "question"},
            template="single_answer",
            metrics=metrics,
            max_gen_toks=4096,
        )
    }
    modes = {short: mode for short, mode in BLEND_MODES.items() if short not in _ABLATIONS}
    pool = f"[{', '.join(f'{chr(34)}{code}{chr(34)}' for code in CORAL_POOL)}]"
    by_country: dict[str, list[str]] = {country: [] for country in COUNTRIES}
    for short, mode in modes.items():
        block = f"agent:\n{_indented({'pool': pool})}\n" if mode == "coral" else ""
        files[f"_blend_saq_{short}_yaml"] = (
            f"{HEADER}include: _blend_saq_yaml\nretrieval:\n{_indented({'mode': mode})}\n{block}"
        )
        names = []
        for country in COUNTRIES:
            names.append(f"blend_saq_{short}_{_SPELLED_OUT.get(country, country.lower())}")
            by_country[country].append(names[-1])
            files[f"{short}/{names[-1]}.yaml"] = leaf(f"../_blend_saq_{short}_yaml", names[-1], {"country": country})
        files[f"{short}/_blend_saq_{short}.yaml"] = group(f"blend_saq_{short}", names, dict.fromkeys(metrics, False))
    # what a country's questions get in every mode: their scores have no mean
    for country, names in by_country.items():
        name = f"blend_saq_{_SPELLED_OUT.get(country, country.lower())}"
        files[f"countries/_{name}.yaml"] = group(name, names, {})
    files["_blend_saq_coral_suite.yaml"] = group("blend_saq_coral_suite", [f"blend_saq_{s}" for s in modes], {})
    return files


# XRAG's variants of a setting: the part of the name before the language -> (English versions, retrieval block).
# "eqes", not "eq_es": that is the English question of the Spanish set.
_XRAG_VARIANTS: dict[str, dict[str, tuple[str, str]]] = {
    "mono": {
        "": ("", ""),
        "oracle_": ("", "retrieval:\n  mode: given\n  given:\n    subset: gold\n"),
        "norag_": ("", "retrieval:\n  mode: no_ir\n"),
    },
    "multi": {
        "": ("", ""),
        "eq_": ("[question]", ""),
        "eqes_": ("[question, supporting]", ""),
        "eqesed_": ("[question, supporting, distracting]", ""),
    },
}


def xrag() -> Files:
    """XRAG: both settings and their controls by language; a group averages its cross-lingual leaves, as the paper."""
    metrics = (
        *("judged_accuracy", "judge_correct", "language_check", "answered_in_english"),
        *("declined", "answer_tag", "char3gram_recall", "f1"),
    )
    # the five languages between which the authors' lingua chose
    told_apart = f"[{', '.join(f'{chr(34)}{code}{chr(34)}' for code in sorted((*XRAG_LANGUAGES, 'en')))}]"
    judge = {"prompt": "correctness", "tie": "incorrect", "language_check": "lingua", "languages": told_apart}
    files = {
        "_xrag_yaml": base(
            benchmark="xrag",
            retrieval={"mode": "given"},
            template="articles",
            metrics=metrics,
            max_gen_toks=512,
            judge=judge,
        )
    }
    for setting, variants in _XRAG_VARIANTS.items():
        for variant, (english, retrieval) in variants.items():
            prefix = f"xrag_{setting}_{variant}"
            for code in (*XRAG_LANGUAGES, *(["en"] if setting == "mono" else [])):
                data = {"setting": setting, "language": code} | ({"english": english} if english else {})
                files[f"{prefix}{code}.yaml"] = leaf("_xrag_yaml", f"{prefix}{code}", data, retrieval)
            members = [f"{prefix}{code}" for code in XRAG_LANGUAGES]
            files[f"_{prefix[:-1]}.yaml"] = group(prefix[:-1], members, dict.fromkeys(metrics, False))
    return files


# RAG in multilingual settings: the part of the name before the language -> (IR mode, whether the mode makes sense for a
# question in English, whether it can find the English page that KILT names).
_MRAG_VARIANTS: dict[str, tuple[dict[str, object], bool, bool]] = {
    "": ({"mode": "all"}, True, False),
    "norag_": ({"mode": "no_ir"}, True, False),
    "en_only_": ({"mode": "en_only"}, True, True),
    "qlang_": ({"mode": "qlang"}, False, False),
    "qlang_plus_en_": ({"mode": "qlang+en"}, False, False),
    "oracle_": ({"mode": "oracle"}, True, True),
    "trag_": ({"mode": "trag"}, False, True),
    # a question in English needs no translation, but is the sparse retriever's figure for English
    "sparse_trag_": ({"mode": "trag", "kind": "sparse", "corpus": "wikipedia_splade"}, True, True),
}
# 256 tokens a pair: naver/bergen, the authors' code
_RERANKER = "{model: BAAI/bge-reranker-v2-m3}"
_MRAG_RERANKER = "{model: BAAI/bge-reranker-v2-m3, max_length: 256}"
_MRAG_RETRIEVAL = {
    "mode": "all",
    "k": 5,
    "depth": 50,
    "corpus": "wikipedia",
    "query_text": "question",
    "rerank": _MRAG_RERANKER,
}


def _mrag(
    name: str, benchmark: str, codes: Sequence[str], metrics: Sequence[str], left_out: Sequence[str] = ()
) -> Files:
    """A benchmark in the paper's retrieval settings. Groups average over the languages other than English, which every
    setting has: means over different sets of languages could not be compared.
    """
    generic = [metric for metric in metrics if "@" not in metric]
    files = {
        f"_{name}_yaml": base(
            benchmark=benchmark,
            retrieval=_MRAG_RETRIEVAL,
            template="background",
            system="short_in_ul_ul",
            metrics=generic,
            max_gen_toks=128,
        )
    }
    for variant, (retrieval, english, finds_page) in _MRAG_VARIANTS.items():
        if variant in left_out:
            continue
        folder = variant.rstrip("_") or "all"
        listed = metrics if finds_page and generic != list(metrics) else ()
        files[f"_{name}_{folder}_yaml"] = f"{HEADER}include: _{name}_yaml\nretrieval:\n{_indented(retrieval)}\n" + (
            f"metrics:\n{_listed(metrics)}\n" if listed else ""
        )
        names = []
        for code in codes:
            if code == "en" and not english:
                continue
            names.append(f"{name}_{variant}{code}")
            files[f"{folder}/{names[-1]}.yaml"] = leaf(f"../_{name}_{folder}_yaml", names[-1], {"language": code})
        members = [leaf_name for leaf_name in names if not leaf_name.endswith("_en")]
        if members:
            group_name = f"{name}_{variant}".rstrip("_")
            averaged = dict.fromkeys(listed or generic, False)
            files[f"{folder}/_{group_name}.yaml"] = group(group_name, members, averaged)
    return files


def mkqa() -> Files:
    """MKQA: 13 languages in every retrieval setting and in CORAL's loop; recall of KILT's page where English alone is
    searched.
    """
    metrics = ("char3gram_recall", "correct_language", "char3gram_recall_aliases", "match", "recall@5")
    files = _mrag("mkqa", "mkqa", MKQA_LANGUAGES, metrics)
    files["_mkqa_coral_yaml"] = f"{HEADER}include: _mkqa_yaml\n{_OPEN_CORAL}"
    names = [f"mkqa_coral_{code}" for code in MKQA_LANGUAGES]
    for name, code in zip(names, MKQA_LANGUAGES, strict=True):
        files[f"coral/{name}.yaml"] = leaf("../_mkqa_coral_yaml", name, {"language": code})
    members = [name for name in names if not name.endswith("_en")]
    averaged = dict.fromkeys([metric for metric in metrics if "@" not in metric], False)
    files["coral/_mkqa_coral.yaml"] = group("mkqa_coral", members, averaged)
    return files


def xor_tydi() -> Files:
    """XOR-TyDi QA: five languages; no page is known, so there is no oracle, and the paper translates no question."""
    left_out = ["oracle_", "trag_", "sparse_trag_"]
    return _mrag("xor_tydi", "xor_tydi", XOR_LANGUAGES, ("char3gram_recall", "correct_language", "match"), left_out)


def tydi() -> Files:
    """TyDi QA's English questions, which stand beside XOR-TyDi QA."""
    metrics = ("char3gram_recall", "correct_language", "match")
    return _mrag("tydi", "tydiqa", ("en",), metrics, ["qlang_", "qlang_plus_en_", "trag_", "sparse_trag_"])


# The Cross-Lingual Cost's retrievers (sections 4.3, 4.4, A.5): the last part of the task name -> the IR mode.
_XLCOST_MODES = {
    "": "all",
    "_norag": "no_ir",
    "_gold_lang": "gold_lang",
    "_balanced": "balanced",
    "_balanced_weighted": "balanced_weighted",
    "_translation": "translation",
}


def xlcost() -> Files:
    """The Cross-Lingual Cost: travel, law and a benchmark of one's own, a leaf for each retriever of the paper.

    One's own names the documents that answer, so it has the upper bound too.
    """
    metrics = (
        *("judge_correct", "char3gram_recall", "correct_language"),
        *("hit@20", "ndcg@20", "mrr@20", "rerank_hit@5"),
    )
    files = {
        "_xlcost_yaml": base(
            benchmark="xlcost",
            retrieval={
                "mode": "all",
                "k": 5,
                "depth": 20,
                "rerank": _RERANKER,
                "corpus": "benchmark",
                "query_text": "question",
            },
            template="elaborate",
            metrics=metrics,
            max_gen_toks=512,
            judge={"prompt": "equivalence", "relevance": "{labels: auto}"},
        ),
        "_xlcost.yaml": group("xlcost", ["xlcost_travel", "xlcost_legal"], dict.fromkeys(metrics, False)),
    }
    for domain in ("travel", "legal", "own"):
        modes = _XLCOST_MODES | ({"_oracle": "oracle"} if domain == "own" else {})
        for short, mode in modes.items():
            name = f"xlcost_{domain}{short}"
            # nothing is searched, so neither corpus nor tokenizer is needed
            data = {"domain": domain} | ({"corpus": "none"} if mode == "no_ir" else {})
            block = f"retrieval:\n{_indented({'mode': mode})}\n" if short else ""
            files[f"{name}.yaml"] = leaf("_xlcost_yaml", name, data, block)
        # without the retriever that needs a translator: its error would end all of them
        members = [f"xlcost_{domain}{short}" for short in modes if short != "_translation"]
        files[f"_xlcost_{domain}_suite.yaml"] = group(f"xlcost_{domain}_suite", members, {})
    return files


# BordIRlines' modes: the part of the name -> the IR mode; and whose hits: the part of the name -> blocks.
_BORDER_MODES = {
    "qlang": "qlang",
    "qlang_en": "qlang+en",
    "en_only": "en_only",
    "rel_langs": "rel_langs",
    "swap_docs": "swap_docs",
}
_BORDER_HITS = {"openai": "published", "m3": "published", "own": "own"}
_BORDER_FORMATS = ("direct", "citation", "likelihood")


def bordirlines() -> Files:
    """BordIRlines: a leaf for each mode, form of answer and retriever; the suite compares the modes as Table 4 does."""
    direct = base(
        benchmark="bordirlines",
        retrieval={"mode": "no_ir", "k": 10, "corpus": "published", "query_text": "question"},
        template="territory_direct",
        metrics=("concurrence", "option_read", "option_refused"),
        max_gen_toks=64,
    )
    files = {
        "_bordirlines_direct_yaml": direct,
        "_bordirlines_citation_yaml": base(
            benchmark="bordirlines",
            retrieval={"mode": "no_ir", "k": 10, "corpus": "published", "query_text": "question"},
            template="territory_citation",
            metrics=("concurrence", "citations", "option_read", "option_refused"),
            max_gen_toks=512,
        ),
        # a generation block beside likelihoods would draw a warning
        "_bordirlines_likelihood_yaml": re.sub(r"generation_kwargs:\n(  .*\n)+", "", direct).replace(
            "output_type: generate_until", "output_type: multiple_choice"
        ),
    }
    for form in ("direct", "likelihood"):
        name = f"bordirlines_no_ir_{form}"
        files[f"no_ir/{name}.yaml"] = leaf(f"../_bordirlines_{form}_yaml", name, {})
    files["no_ir/_bordirlines_no_ir.yaml"] = group("bordirlines_no_ir", ["bordirlines_no_ir_direct"], {})
    for short, mode in _BORDER_MODES.items():
        for form in _BORDER_FORMATS:
            for hits, corpus in _BORDER_HITS.items():
                name = f"bordirlines_{short}_{form}_{hits}"
                retrieval: dict[str, object] = {"mode": mode}
                if corpus == "own":
                    retrieval |= {"corpus": "bordirlines", "candidates": "row"}
                data: dict[str, object] = {"embedder": hits} if corpus == "published" else {}
                block = f"retrieval:\n{_indented(retrieval)}\n"
                files[f"{short}/{name}.yaml"] = leaf(f"../_bordirlines_{form}_yaml", name, data, block)
        members = [f"bordirlines_{short}_{form}_{hits}" for form in ("direct", "citation") for hits in ("openai", "m3")]
        files[f"{short}/_bordirlines_{short}.yaml"] = group(f"bordirlines_{short}", members, {})
    suite = ["bordirlines_no_ir_direct", *(f"bordirlines_{short}_direct_openai" for short in _BORDER_MODES)]
    files["_bordirlines_suite.yaml"] = group("bordirlines_suite", suite, {})
    return files


_WRITERS: dict[str, Callable[[], Files]] = {
    "xquad_rag": xquad_rag,
    "click": click,
    "blend": blend,
    "blend_saq": blend_saq,
    "xrag": xrag,
    "mkqa": mkqa,
    "xor_tydi": xor_tydi,
    "tydi": tydi,
    "xlcost": xlcost,
    "bordirlines": bordirlines,
}


def all_files() -> Iterator[tuple[Path, str]]:
    """Every file, relative to ``tasks/``, with its content."""
    for folder, write in _WRITERS.items():
        for name, content in write().items():
            yield Path(folder) / name, content


def stale(root: Path = TASKS) -> list[str]:
    """What differs from the tables: files to write, and files of ours that no table knows any more."""
    expected = {root / path: content for path, content in all_files()}
    wrong = [
        str(path.relative_to(root))
        for path, content in expected.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != content
    ]
    known = {path.relative_to(root).parts[0] for path in expected}
    for path in sorted(root.glob("**/*yaml")):
        ours = path.relative_to(root).parts[0] in known and path.read_text(encoding="utf-8").startswith(HEADER)
        if ours and path not in expected:
            wrong.append(f"{path.relative_to(root)} (no longer written)")
    return wrong


def main() -> int:
    """Write the files, or with ``--check`` say which ones are out of date."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 if a file is out of date")
    if parser.parse_args().check:
        wrong = stale()
        print("\n".join(wrong) or "tasks are up to date")
        return 1 if wrong else 0
    count = 0
    for path, content in all_files():
        target = TASKS / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
        count += 1
    print(f"{count} files written to {TASKS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
