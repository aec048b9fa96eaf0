"""Claims of finished runs that a panel judges afterwards."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import mrag_eval
from mrag_eval.cli import Session, app
from mrag_eval.config import GROUNDED, Grounded
from mrag_eval.datasets import sha256_file
from mrag_eval.models import Reply, load_checker
from mrag_eval.platform import DataError, MragError, UnwrittenError
from mrag_eval.report import LeafResult, compare, gate, read_results, read_rules, read_samples, verify
from tests.task.test_hook import knows_everything
from tests.worlds import logs
from tests.worlds.classifiers import Rule, classifier_folder
from tests.worlds.judged_runs import judges_told
from tests.worlds.judges import Script, failing, on_claim, supports
from tests.worlds.model_server import Answer, ModelServer, asked, said
from tests.worlds.small import BASE, TOPICS, ScriptedLM, write_task

BY = "answer_evidence"
DENIES: Script = lambda prompt: on_claim(prompt, "contradicted", 1)  # noqa: E731


@pytest.fixture
def judges(
    start: Callable[..., ModelServer], tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[ModelServer]]:
    """Return what writes a config file whose judges say what scripts say of claims, and ``correct`` of answers."""

    def judged(**scripts: Script) -> list[ModelServer]:
        def reply(script: Script, body: dict[str, Any]) -> Any:
            prompt = asked(body)
            if "<claim>" not in prompt:
                return said('{"justification": "seen", "answer": "correct", "sufficient": "yes"}')
            found = script(prompt)
            return Answer(status=400, body={"error": "no"}) if isinstance(found, Reply) else said(found)

        servers = [start(lambda body, attempt, own=script: reply(own, body)) for script in scripts.values()]
        models = {
            name: {
                "model": "local-chat-completions",
                "retries": 0,
                "model_args": {"model": f"m-{name}", "base_url": server.url},
            }
            for name, server in zip(scripts, servers, strict=True)
        }
        (tasks / "mrag.yaml").write_text(yaml.safe_dump({"models": models, "judges": [*models]}), "utf-8")
        monkeypatch.chdir(tasks)
        monkeypatch.setenv("MRAG_CONFIG", str(tasks / "mrag.yaml"))
        monkeypatch.setenv("MRAG_CACHE", str(tasks / "cache"))
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        return servers

    return judged


def ran(tasks: Path, name: str, metrics: Sequence[str], judge: Any = None, mode: str = "all") -> Path:
    data = {"benchmark": "jsonl", "path": str(tasks / "questions.jsonl"), "corpus": str(tasks / "corpus.jsonl")}
    retrieval = {"mode": mode, "k": 2, "kind": "bm25"} if mode == "all" else {"mode": mode}
    blocks = {"retrieval": retrieval, "judge": judge or {}}
    path = write_task(tasks, "t", **{**BASE, "metrics": list(metrics)}, data=data, **blocks)
    mrag_eval.evaluate(ScriptedLM(knows_everything), str(path), output=tasks / name, apply_chat_template=False)
    return Path(name)


def cli(*arguments: Any) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)), obj=Session())


def done(*arguments: Any, exit_code: int = 0) -> str:
    found = cli("judge", *arguments)
    assert found.exit_code == exit_code, f"{found.output} {found.exception}"
    return str(found.output)


def leaf_of(out: Path) -> LeafResult:
    (file,) = read_results([out])
    (leaf,) = file.leaves.values()
    return leaf


def samples_of(out: Path) -> Any:
    (file,) = read_results([out])
    (task,) = file.leaves
    path = file.samples(task)
    assert path is not None
    return read_samples(path)


@pytest.mark.parametrize("metrics", [("match", *GROUNDED), ("judge_correct", *GROUNDED)], ids=lambda m: m[0])
def test_claims_judged_later_are_those_of_a_run_that_asks_for_them(tasks: Path, judges: Any, metrics: Any) -> None:
    servers = judges(a=supports, b=supports, c=DENIES)
    first = ran(tasks, "a", metrics, {"grounded": {"by": "panel"}})
    sent = [len(server.requests) for server in servers]
    later = ran(tasks, "b", metrics[:1])
    assert "grounded" not in leaf_of(later).scores.metrics
    shown = done("claims", later)
    assert "claims" in shown
    # the requests are the same
    assert [len(server.requests) for server in servers] == sent
    one, other = leaf_of(first), leaf_of(later)
    assert other.scores.to_dict()["metrics"] == one.scores.to_dict()["metrics"]
    for field in ("failures", "unscored", "query_langs", "controls"):
        assert getattr(one.scores, field) == getattr(other.scores, field)
    for what, table in one.scores.panels.items():
        assert replace(other.scores.panels[what], ledger={}) == replace(table, ledger={})
    for a, b in zip(samples_of(first), samples_of(later), strict=True):
        rest: Any = {"claims_panel": None, "panel": None, "prompts": None, "skipped": (), "came_back": {}}
        assert replace(a.record, **rest) == replace(b.record, **rest)
    compared = compare([first], [later])
    assert {one.metric for one in compared.differences} == {*one.scores.metrics}
    assert compared.differs == {}
    assert verify([later], tasks)[0].findings == ()
    # as in the run, and again where all replies are kept; of claims that were judged before, the last judges count
    for _ in range(2):
        assert leaf_of(later).measurement.outcome["seats"] == one.measurement.outcome["seats"]
        done("claims", later)
    assert [len(server.requests) for server in servers] == sent
    path = next(later.rglob("judged_scores_*.json"))
    path.write_text(path.read_text("utf-8").replace('"stop": ', '"stop": 1'), "utf-8")
    assert any("outcome.seats.a" in found.text for found in verify([later], tasks)[0].of("fault"))


def test_what_came_back_from_a_panel_that_was_asked_about_a_log_is_counted(tasks: Path, judges: Any) -> None:
    """In its record, and with the first row of a batch; a change of it is found."""
    judges(a=supports)
    row = {"query": "Where?", "lang": "en", "answers": ["Kiel"], "reply": "It is in Kiel. It is old."}
    shown = [{"id": "p", "text": "It is in Kiel. It is old."}]
    log = [{**row, "id": f"r{number}", "reply": f"{number}. It is in Kiel.", "passages": shown} for number in range(3)]
    mrag_eval.score(log, ["grounded"], output=tasks / "log", grounded="panel")
    claims = sum(len(one.record.grounding.claims) for one in samples_of(tasks / "log"))
    assert leaf_of(tasks / "log").measurement.outcome["seats"]["a"]["ends"] == {"stop": claims}
    assert [bool(one.record.seats) for one in samples_of(tasks / "log")] == [True, False, False]
    assert not verify([tasks / "log"], tasks)[0].of("fault")
    for path in [*(tasks / "log").glob("samples_*"), *(tasks / "log").glob("results_*")]:
        text = path.read_text("utf-8")
        path.write_text(text.replace('"stop": ', '"stop": 1'), "utf-8")
        assert any("outcome.seats.a" in one.text for one in verify([tasks / "log"], tasks)[0].of("fault")), path
        path.write_text(text, "utf-8")


def test_a_dry_run_counts_requests_and_asks_nobody(tasks: Path, judges: Any) -> None:
    servers = judges(a=supports, b=supports)
    out = ran(tasks, "out", ["match"])
    before = {path: path.read_bytes() for path in tasks.rglob("*") if path.is_file()}
    shown = done("claims", out, "--dry-run")
    claims = len(samples_of(out))
    assert f"{2 * claims} requests to a panel of 2: 0 from cache, {2 * claims} to be sent" in shown
    assert [len(server.requests) for server in servers] == [0, 0]
    assert {path: path.read_bytes() for path in tasks.rglob("*") if path.is_file()} == before
    done("claims", out, "--panel", "a")
    for command in ("claims", "answers"):
        kept = claims if command == "claims" else 0
        shown = done(command, out, "--dry-run")
        assert f"{2 * claims} requests to a panel of 2: {kept} from cache, {2 * claims - kept} to be sent" in shown
    assert [len(server.requests) for server in servers] == [claims, 0]


ORDERS = [
    ("claims", "answers"),
    ("passages", "claims", "answers"),
    ("answers", "passages", "claims"),
    ("claims", "passages", "answers", "claims", "passages", "answers"),
]


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["match", "f1"])
@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_verdicts_of_each_kind_stand_beside_each_other(
    tasks: Path, judges: Any, order: Sequence[str], metric: str
) -> None:
    judges(a=supports, b=DENIES, c=supports)
    out = ran(tasks, "out", [metric])
    panels = {"claims": "a", "answers": "b", "passages": "c"}
    for command in order:
        done(command, out, "--panel", panels[command])
        assert not verify([out], tasks)[0].of("fault")
    leaf = leaf_of(out)
    assert leaf.scores.metrics["judge_correct"].value == 1.0
    assert leaf.scores.metrics["grounded"].value == leaf.scores.metrics["right_supported"].value
    about = {"contexts" if command == "passages" else command: f"m-{panels[command]}" for command in order}
    assert {what: table.models for what, table in leaf.scores.panels.items()} == {k: [v] for k, v in about.items()}
    # what came back from each errand is that of the run
    assert leaf.measurement.outcome["seats"].keys() == {panels[command] for command in order}
    record = leaf.measurement.instruments
    assert [*record["judges"]] == ["b"]
    assert [*leaf.measurement.judges] == ["m-b"]
    for name in GROUNDED:
        assert [*record[f"metric:{name}"]["judges"]] == ["m-a"]
    if "passages" in order:
        assert leaf.scores.metrics["context_sufficiency"].value == 1.0
        assert [*record["metric:context_sufficiency"]["judges"]] == ["m-c"]
    assert {record[f"metric:{name}"]["right"] for name in GROUNDED[1:]} == {"judged_accuracy"}
    assert leaf.config.judge["grounded"] == {"by": "panel", "prompt": "support"}
    # another order is the same measurement
    other = ran(tasks, "other", [metric])
    for command in reversed(order):
        done(command, other, "--panel", panels[command])
    assert compare([out], [other]).differs == {}
    assert leaf_of(other).scores.metrics == leaf.scores.metrics


@pytest.mark.slow
def test_passages_judged_later_are_those_of_a_run_that_asks_for_them(tasks: Path, judges: Any) -> None:
    """By its judges or by others, who are asked again where the votes were replaced."""
    judges(a=supports, b=DENIES)
    first = ran(tasks, "a", ["match", "context_sufficiency"], {"panel": ["a"]})
    later = ran(tasks, "b", ["match"])
    for panel in ("b", "a"):
        done("passages", later, "--panel", panel)
    one, other = leaf_of(first), leaf_of(later)
    assert other.scores.to_dict()["metrics"] == one.scores.to_dict()["metrics"]
    assert compare([first], [later]).differs == {}
    assert other.measurement.outcome["seats"] == one.measurement.outcome["seats"]
    # judges of answers beside them, and a run whose own judges are replaced
    done("answers", first, "--panel", "b")
    assert [*leaf_of(first).measurement.instrument["metric:context_sufficiency"]["judges"]] == ["m-a"]
    done("passages", first, "--panel", "b")
    assert [*leaf_of(first).measurement.instrument] == ["judges"]
    for out in (first, later):
        assert not verify([out], tasks)[0].of("fault")
    assert cli("report", later, "-o", "page.html").exit_code == 0
    assert "judging passages" in Path("page.html").read_text("utf-8")
    (samples,) = later.rglob("judged_samples_*")
    text = samples.read_text("utf-8")
    scores = next(later.rglob("judged_scores_*"))
    samples.write_text(text.replace('"stop":', '"length":'), "utf-8")
    whole = json.loads(scores.read_text("utf-8")) | {"samples": sha256_file(samples)}
    scores.write_text(json.dumps(whole, ensure_ascii=False), "utf-8")
    assert any("outcome.seats.a" in found.text for found in verify([later], tasks)[0].of("fault"))


@pytest.mark.slow
def test_other_judges_of_claims_take_the_place_of_those_before(tasks: Path, judges: Any) -> None:
    """Whether a run, a classifier's or an earlier command's verdicts."""
    judges(a=supports, b=DENIES)
    rules = tasks / "rules.yaml"
    rules.write_text(json.dumps({"rules": [{"metric": "grounded", "max_drop": 0.1}]}), "utf-8")
    of_run = ran(tasks, "of_run", ["match", "grounded"], {"panel": ["b"], "grounded": {"by": "panel"}})
    plain = ran(tasks, "plain", ["match"])
    wanted = ran(tasks, "wanted", ["match", *GROUNDED], {"panel": ["a"], "grounded": {"by": "panel"}})
    for out in (of_run, plain):
        done("claims", out, "--panel", "b")
        assert leaf_of(out).scores.metrics["grounded"].value == 0
        with pytest.raises(MragError, match="the runs differ in judges"):
            compare([out], [wanted])
        (check,) = gate([out], [wanted], read_rules(rules)).checks
        assert "judges" in str(check.reason)
        done("claims", out, "--panel", "a")
        assert compare([out], [wanted]).differs == {}
        assert leaf_of(out).scores.metrics == leaf_of(wanted).scores.metrics
        (check,) = gate([out], [wanted], read_rules(rules)).checks
        assert check.difference == 0, check
    # where another panel judged the answers, the metrics of claims alone are others
    for out, judge in ((of_run, "a"), (plain, "b")):
        done("answers", out, "--panel", "b")
        done("claims", out, "--panel", judge)
    found = compare([of_run], [plain])
    assert {*found.differs["t"]} == {f"metric:{name}.judges" for name in GROUNDED}
    assert not {*GROUNDED} & {one.metric for one in found.differences}


def test_a_classifiers_settings_go_with_its_verdicts(tasks: Path, judges: Any) -> None:
    judges(a=supports)
    texts = [text for topic in TOPICS.values() for own in topic.values() for text in own]
    grounded = {"model": str(classifier_folder(tasks / "model", texts, longest=64))}
    load_checker(Grounded(**grounded))._model = Rule()
    out = ran(tasks, "out", ["match", *GROUNDED], {"grounded": grounded})
    other = ran(tasks, "other", ["match", *GROUNDED], {"grounded": {"by": "panel"}})
    done("claims", out)
    leaf = leaf_of(out)
    assert leaf.config.judge["grounded"] == {"by": "panel", "prompt": "support"}
    assert leaf.scores.metrics == leaf_of(other).scores.metrics
    assert compare([out], [other]).differs == {}


def test_a_judge_without_a_vote_ends_with_1_and_a_panel_without_one_writes_nothing(tasks: Path, judges: Any) -> None:
    servers = judges(dead=failing(), a=supports, b=supports)
    out = ran(tasks, "out", ["match"])
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    error = cli("judge", "claims", out, "--panel", "dead").exception
    assert isinstance(error, UnwrittenError)
    assert "no judge gave a vote: dead" in error.message
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    found = cli("judge", "claims", out)
    assert found.exit_code == 1
    assert "no vote was given by dead" in found.output
    scores = leaf_of(out).scores
    assert scores.claims is not None
    assert scores.claims.judges["dead"].silent
    # the two others agree
    assert scores.metrics["grounded"].n == 15
    assert not scores.failures
    sent = [len(server.requests) for server in servers]
    # the same again asks the dead one alone
    assert cli("judge", "claims", out).exit_code == 1
    again = [len(server.requests) for server in servers]
    assert again[0] > sent[0]
    assert again[1:] == sent[1:]
    # with a tie of one to one a missing vote decides nothing, until it comes
    assert cli("judge", "claims", out, "--panel", "dead,a").exit_code == 1
    assert sum(leaf_of(out).scores.failures["grounding"].values()) == 15
    assert "grounding failed" in str(leaf_of(out).scores.unscored["grounded"])
    done("claims", out, "--panel", "a,b")
    assert leaf_of(out).scores.failures == {}


def test_what_has_no_claims_to_judge_is_refused_in_a_line(tasks: Path, judges: Any) -> None:
    judges(a=supports)
    bare = ran(tasks, "bare", ["match"], mode="no_ir")
    rows = logs.rows_of(logs.own)
    mrag_eval.score(rows, ["match_unicode"], output=tasks / "hashed", hash_texts=True)
    for out, fault, commands in (
        (bare, "no passages were shown in this run", ("claims", "passages")),
        (Path("hashed"), "its texts are hashes, which no judge can read", ("claims", "passages", "answers")),
    ):
        for command in commands:
            error = cli("judge", command, out).exception
            assert isinstance(error, DataError), (command, error)
            assert fault in error.message
            assert "\n" not in error.message
    mrag_eval.score(rows, ["match_unicode"], output=tasks / "log")
    done("claims", "log")
    assert leaf_of(Path("log")).scores.metrics["grounded"].n > 0


PROMPT = """{% block user %}<claim>
{{ claim }}
</claim>
{{ listed(passages, "<passage_#>", "Language: x
</passage_#>") }}
{"label_{{ code }}": "supported", "contradicted" or "not_found", "passage_{{ code }}": 1}{% endblock %}"""


@pytest.mark.slow
def test_a_prompt_that_results_name_is_asked_with_only_if_the_user_names_it(tasks: Path, judges: Any) -> None:
    servers = judges(a=supports)
    (tasks / "own.jinja").write_text(PROMPT, "utf-8")
    own = {"by": "panel", "prompt": "./own.jinja"}
    of_others = {"sufficiency": {"prompt": "./other.jinja"}}
    out = ran(tasks, "out", ["match", "grounded"], {"grounded": own, **of_others})
    sent = len(servers[0].requests)
    error = cli("judge", "claims", out).exception
    assert isinstance(error, DataError)
    assert "judge.grounded.prompt" in error.message
    done("claims", out, "--prompt", "own.jinja")
    assert len(servers[0].requests) == sent
    again = ran(tasks, "again", ["match", "grounded"], {"grounded": own, **of_others})
    assert compare([out], [again]).differs == {}
    done("claims", out, "--prompt", "support")
    assert len(servers[0].requests) > sent
    # the prompts of other judgements do not matter
    done("answers", out)
    error = cli("judge", "passages", out).exception
    assert "judge.sufficiency.prompt" in str(error)


@pytest.mark.slow
def test_verdicts_whose_votes_were_edited_do_not_count(
    tasks: Path, judges: Any, caplog: pytest.LogCaptureFixture
) -> None:
    judges(a=supports)
    out = ran(tasks, "out", ["match"])
    done("claims", out)
    (path,) = out.rglob("judged_samples_*")
    (scores,) = out.rglob("judged_scores_*")
    whole = {file: file.read_text("utf-8") for file in (path, scores)}
    (clean,) = verify([out], tasks)
    assert clean.findings == ()
    # scores alone are those of no samples
    for change, other in (("value", 0.123), ("n", 3), ("high", 0.987)):
        own = json.loads(whole[scores])
        own["scores"]["metrics"]["grounded"][change] = other
        scores.write_text(json.dumps(own), "utf-8")
        (found,) = verify([out], tasks)
        assert [one.kind for one in found.findings] == ["fault"], change
        assert found.findings[0].text.startswith(scores.name)
    scores.write_text("no JSON", "utf-8")
    assert [one.kind for one in verify([out], tasks)[0].findings] == ["fault"]
    scores.write_text(whole[scores], "utf-8")
    path.write_text(whole[path].replace('"supported"', '"contradicted"'), "utf-8")
    (edited,) = verify([out], tasks)
    assert [one.kind for one in edited.findings] == ["fault"]
    assert "these verdicts do not count" in edited.findings[0].text
    assert "grounded" not in leaf_of(out).scores.metrics
    assert any("these verdicts do not count" in record.getMessage() for record in caplog.records)
    # judged again, they are whole
    done("claims", out)
    assert leaf_of(out).scores.metrics["grounded"].value is not None
    done("answers", out)
    # the run asked no judge of answers
    assert [(one.kind, "texts.judge" in one.text) for one in verify([out], tasks)[0].findings] == [("deviation", True)]


def test_votes_on_claims_are_read_again_from_their_replies(tasks: Path, judges: Any) -> None:
    """On any machine: nobody is asked, and no cache is there. Verdicts that the replies do not give are a fault."""
    judges(a=supports)
    out = ran(tasks, "out", ["match"])
    done("claims", out)
    shutil.rmtree(tasks / "cache")
    (tasks / "mrag.yaml").unlink()
    assert verify([out], tasks)[0].of("fault") == []
    (path,) = out.rglob("judged_samples_*")
    (scores,) = out.rglob("judged_scores_*")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for line in lines:
        for claim in line["rows"]["grounding"]["claims"]:
            for vote in claim["votes"].values():
                vote["verdict"] = "contradicted"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    whole = json.loads(scores.read_text("utf-8"))
    scores.write_text(json.dumps({**whole, "samples": sha256_file(path)}), "utf-8")
    texts = [one.text for one in verify([out], tasks)[0].of("fault")]
    assert any("grounding" in text and text.endswith("by its reply") for text in texts), texts


@pytest.mark.slow
@pytest.mark.parametrize("block", [{"tie": "abstain"}, {"repeats": 2}, {}], ids=str)
def test_settings_of_the_votes_are_those_of_the_command_or_of_the_run(tasks: Path, judges: Any, block: Any) -> None:
    judges(a=lambda prompt: on_claim(prompt, "supported", 1), b=lambda prompt: on_claim(prompt, "not_found"))
    wanted = ran(tasks, "wanted", ["match", *GROUNDED], {"grounded": {"by": "panel"}, **block})
    flags = [part for key, value in block.items() for part in (f"--{key}", value)]
    for given, settings in ((flags, {}), ([], block)):
        out = ran(tasks, "out", ["match"], settings)
        # two judges who never agree: where ties abstain, no row is judged
        done("claims", out, *given, exit_code=int("tie" in block))
        assert leaf_of(out).scores.metrics == leaf_of(wanted).scores.metrics
        assert leaf_of(out).scores.unscored == leaf_of(wanted).scores.unscored
        assert compare([out], [wanted]).differs == {}
        for path in out.rglob("*.json*"):
            path.unlink()


def test_reports_and_exports_show_the_claims_judged_later(tasks: Path, judges: Any) -> None:
    judges(a=supports, b=supports)
    out = ran(tasks, "out", ["match"])
    done("claims", out)
    shown = cli("report", out, "--metrics", "all")
    assert shown.exit_code == 0, f"{shown.output} {shown.exception}"
    assert "grounded" in shown.output
    assert cli("report", out, "-o", "page.html").exit_code == 0
    assert "judging claims" in (tasks / "page.html").read_text("utf-8")
    assert cli("export", out, "--format", "eee", "-o", "eee").exit_code == 0
    told = judges_told(Path("eee"))
    assert told["grounded"] == ["m-a", "m-b"]


def test_a_gate_holds_each_pair_of_answer_and_evidence(tasks: Path, judges: Any) -> None:
    judges(a=supports, b=DENIES)
    for name, judge in (("a", "a"), ("b", "a"), ("c", "b")):
        done("claims", ran(tasks, name, ["match"]), "--panel", judge)
    by = leaf_of(Path("a")).scores.metrics["grounded"].by[BY]
    assert len(by) > 1
    guard = {BY: {"max_drop": 0.1, "min_n": 2}}
    rule = {"metric": "grounded", "max_drop": 0.1, "per": guard}
    Path("rules.yaml").write_text(json.dumps({"min_n": 2, "rules": [rule], "differs": ["judges", "metric:grounded"]}))
    assert cli("gate", "--save", "base.json", "a").exit_code == 0
    for baseline in ("a", "base.json"):
        for name in "bc":
            found = gate([Path(baseline)], [Path(name)], read_rules(Path("rules.yaml")))
            assert [(c.by, c.language) for c in found.checks] == [
                (None, None),
                *((BY, pair) for pair in by),
            ]
            own = leaf_of(Path(name)).scores.metrics["grounded"]
            assert [c.candidate for c in found.checks] == [own.value, *(cell.value for cell in own.by[BY].values())]
            assert {check.elsewhere for check in found.checks} == {None}
