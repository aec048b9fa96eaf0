"""The command line: output, exit codes, and errors without tracebacks."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mrag_eval.cli import _catalog as catalog
from mrag_eval.cli import _harness as harness
from mrag_eval.cli._doctor import redacted
from mrag_eval.datasets import LOADERS
from mrag_eval.platform import HIDDEN
from mrag_eval.report import EXPORTS
from tests.programs import Programs

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def cli(tmp_path: Path, programs: Programs) -> Run:
    """Run ``mrag-eval`` in an empty folder, with its own cache and home."""

    def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [programs / "mrag-eval", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path), "COLUMNS": "120", **env},
        )

    return run


def test_version_and_help(cli: Run) -> None:
    assert cli("--version").stdout.startswith("mrag-eval 0.")
    shown = cli("--help")
    assert shown.returncode == 0
    panels = ("Start", "Run", "Look", "Compare and gate", "Judge", "Corpora and indexes", "Build")
    places = [shown.stdout.index(f"─ {panel} ─") for panel in panels]
    assert places == sorted(places)
    for command in ("run", "demo", "tasks", "index", "gate", "doctor"):
        assert f"│ {command} " in shown.stdout
    assert "Exit codes" in shown.stdout


def test_unknown_command_and_option_exit_with_2(cli: Run) -> None:
    for arguments in (["nonsense"], ["tasks", "--nonsense"]):
        done = cli(*arguments)
        assert done.returncode == 2
        assert "nonsense" in done.stderr
        assert "Traceback" not in done.stderr


def test_errors_are_one_line_and_the_next_step(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "mrag.yaml").write_text("corpra: {}\n", encoding="utf-8")
    done = cli("doctor", "--config")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("mrag-eval: ")
    assert "corpra" in done.stderr
    assert "did you mean 'corpora'" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in cli("--debug", "doctor", "--config").stderr


def test_next_step_is_indented_below_the_message(cli: Run) -> None:
    done = cli("doctor", "--config", MRAG_CONFIG="missing.yaml")
    first, second = done.stderr.splitlines()
    assert first.startswith("mrag-eval: ")
    assert second.startswith("    ")
    assert second.strip()


def test_doctor_shows_the_config_file_and_its_path(cli: Run, tmp_path: Path) -> None:
    assert "no config file" in cli("doctor", "--config").stdout
    (tmp_path / "mrag.yaml").write_text("corpora: {wikipedia: /srv/wiki}\n", encoding="utf-8")
    shown = cli("doctor", "--config").stdout
    assert shown.splitlines()[0] == f"# {tmp_path.resolve() / 'mrag.yaml'}"
    assert "wikipedia: /srv/wiki" in shown


def test_secrets_are_hidden_wherever_they_are_nested() -> None:
    shown = redacted(
        {
            "judges": [{"model_args": {"api_key": "sk-1", "max_tokens": 5, "model": "m"}}],
            "HF_TOKEN": "t",
            "password": "",
        }
    )
    assert shown["judges"][0]["model_args"] == {"api_key": HIDDEN, "max_tokens": 5, "model": "m"}
    assert shown["HF_TOKEN"] == HIDDEN
    assert shown["password"] == ""


def test_tasks_lists_names_modes_and_counts(cli: Run) -> None:
    lines = cli("tasks", "mrag_demo").stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == [
        "mrag_demo",
        "mrag_demo_monorag",
        "mrag_demo_multirag",
        "mrag_demo_norag",
    ]
    assert "qlang" in lines[1]
    assert lines[-1] == "3 tasks, 1 group"


def here(*arguments: str) -> str:
    """Return what a command prints, run in this process."""
    from mrag_eval.cli import Session, app

    return str(CliRunner().invoke(app, arguments, obj=Session(), catch_exceptions=False).stdout)


def test_tasks_lists_the_benchmarks_first() -> None:
    head, *lines = here("tasks").splitlines()
    assert head.split() == ["benchmark", "tasks", "languages", "needs", "asks"]
    rows = {line.split()[0]: line for line in lines[: len(LOADERS)]}
    assert set(rows) == set(LOADERS)
    assert rows["xrag"].split()[2:9] == ["de", "es", "zh", "ar", "en", "download,", "judge"]
    assert LOADERS["xrag"].declaration.summary in rows["xrag"]
    assert " 49 " in rows["bordirlines"]
    tasks = catalog.list_tasks()
    leaves = sum(task.kind == "task" for task in tasks)
    assert any(line.startswith(f"{leaves} tasks, {len(tasks) - leaves} groups") for line in lines)


def test_tasks_of_one_benchmark_by_its_name_or_its_folder() -> None:
    text = here("tasks", "xquad")
    assert text == here("tasks", "xquad_rag")
    for part in ("google/xquad: CC-BY-SA-4.0", "main metric  char3gram_recall", "Amiraz et al."):
        assert part in text
    listed = text.partition(" groups\n")[2]
    assert {line.split()[0] for line in listed.splitlines() if line and not line.endswith(" tasks")} == {
        task.name for task in catalog.list_tasks(catalog.tasks_folder() / "xquad_rag")
    }


def test_tasks_as_json_and_by_every_name() -> None:
    first = json.loads(here("tasks", "--json"))
    assert [one["name"] for one in first] == list(LOADERS)
    assert {one["name"]: one["n_tasks"] for one in first}["demo"] == 3
    demo = json.loads(here("tasks", "demo", "--json"))
    assert (demo["licence"], len(demo["entries"])) == ("Apache-2.0", 4)
    assert here("tasks", "--all").count("\n") == len(catalog.list_tasks()) + 1


def test_tasks_says_that_nothing_has_that_name(cli: Run) -> None:
    for name, close in (("xrga", "xrag"), ("mrag_norga", "mrag_norag")):
        done = cli("tasks", name)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"no benchmark, tag or task is called '{name}'; did you mean '{close}'?" in done.stderr
    assert "mrag-eval tasks   lists the benchmarks and tags" in done.stderr


def test_tasks_names_the_tags_and_lists_the_tasks_of_one() -> None:
    tasks = catalog.list_tasks()
    tags = {tag for task in tasks for tag in task.tags}
    assert catalog.tag_names() == sorted(tags)
    shown = here("tasks")
    assert all(tag in shown for tag in tags)
    *lines, count = here("tasks", "mrag_trag").splitlines()
    assert [line.split()[0] for line in lines] == [task.name for task in tasks if "mrag_trag" in task.tags]
    assert count == f"{len(lines)} tasks, 0 groups"


def test_tasks_path_prints_only_the_folder(cli: Run) -> None:
    done = cli("tasks", "--path")
    assert (Path(done.stdout.strip()) / "demo" / "mrag_demo_norag.yaml").is_file()
    assert len(done.stdout.splitlines()) == 1


def test_all_our_task_files_are_sound() -> None:
    assert catalog.check_tasks() == []
    assert len(catalog.list_tasks()) > 20


_CLASS = "class: !function mrag_eval.task.RagTask\n"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "a.yaml",
            _CLASS + "task: a\nretrieval: {mode: everything}\ndata: {benchmark: demo}\nmetrics: [match]\n",
            "everything",
        ),
        ("b.yaml", _CLASS + "task: b\ndata: {benchmark: nowhere}\nmetrics: [match]\n", "nowhere"),
        ("c.yaml", _CLASS + "task: c\ndata: {benchmark: demo}\nmetrics: [vibes]\n", "vibes"),
        ("d.yaml", _CLASS + "task: d\ndata: {benchmark: demo}\nmetrics: [match]\nprompt: {template: nope}\n", "nope"),
        ("j.yaml", "task: j\ndata: {benchmark: demo}\nmetrics: [match]\n", "'class'"),
        ("e.yaml", "group: e\ntask: [not_there]\n", "not_there"),
        ("f.yaml", "task: [unclosed\n", "f.yaml"),
        ("g.yaml", "include: missing_yaml\ntask: g\n", "missing_yaml"),
        ("h.yaml", "nothing: here\n", "neither 'task' nor 'group'"),
        ("i.yaml", _CLASS + "task: i\ndata: {benchmark: demo}\nmetrics: [match]\nretreival: {k: 3}\n", "retreival"),
    ],
)
def test_check_names_every_broken_file(cli: Run, tmp_path: Path, name: str, content: str, said: str) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "good.yaml").write_text(
        _CLASS + "task: good\ndata: {benchmark: demo}\nmetrics: [match]\n", encoding="utf-8"
    )
    assert catalog.check_tasks(folder) == []
    (folder / name).write_text(content, encoding="utf-8")
    (fault,) = catalog.check_tasks(folder)
    assert fault.startswith(name)
    assert said in fault
    done = cli("tasks", "--check", "--folder", str(folder))
    assert done.returncode == 1
    assert fault in done.stdout


def test_check_does_not_take_the_config_file_for_a_task(tmp_path: Path) -> None:
    (tmp_path / "mrag.yaml").write_text("corpora: {}\n", encoding="utf-8")
    assert catalog.check_tasks(tmp_path) == []
    (tmp_path / "other.yaml").write_text("corpora: {}\n", encoding="utf-8")
    assert len(catalog.check_tasks(tmp_path)) == 1


def test_check_notices_a_name_used_twice(tmp_path: Path) -> None:
    for name in ("one", "two"):
        text = _CLASS + "task: same\ndata: {benchmark: demo}\nmetrics: [match]\n"
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    (fault,) = catalog.check_tasks(tmp_path)
    assert "same" in fault
    assert "one.yaml" in fault


def test_doctor_says_what_is_missing_and_how_to_fix_it(cli: Run, tmp_path: Path) -> None:
    done = cli("doctor", OPENAI_API_KEY="sk-not-to-be-shown", ANTHROPIC_API_KEY="")
    assert done.returncode == 0
    assert "sk-not-to-be-shown" not in done.stdout
    assert "OPENAI_API_KEY set" in done.stdout
    assert "ANTHROPIC_API_KEY not set" in done.stdout
    assert "mrag-eval index build" in done.stdout
    findings = json.loads(cli("doctor", "--json").stdout)
    assert {"package", "models", "embedders", "corpora", "data", "keys"} <= {f["topic"] for f in findings}
    assert all(f["ok"] or f["fix"] for f in findings)


def test_doctor_shows_how_to_configure_judges_or_which_there_are(cli: Run, tmp_path: Path) -> None:
    none = cli("doctor").stdout
    (example,) = (f["fix"] for f in json.loads(cli("doctor", "--json").stdout) if f["topic"] == "judges")
    assert "docs/judges.md" in none
    head, *lines = example.splitlines()
    assert head.startswith("in mrag.yaml")
    assert lines[0] == "judges:"
    assert all(line in none for line in lines)
    # the printed example is a config that works
    (tmp_path / "mrag.yaml").write_text("\n".join(lines), encoding="utf-8")
    assert "gpt-4o-2024-08-06: openai-chat-completions" in cli("doctor").stdout
    config = """models:
  own: {model: local-chat-completions, model_args: {model: qwen, base_url: "http://127.0.0.1:1/v1/chat/completions"}}
  large: {model: local-chat-completions, model_args: {model: mistral, base_url: "http://x/v1"}, api_key_env: LA_CLE}
judges: [own, large, {model: anthropic-chat-completions, model_args: {model: claude-x}}]
"""
    (tmp_path / "mrag.yaml").write_text(config, encoding="utf-8")
    shown = cli("doctor", LA_CLE="not-to-be-shown", ANTHROPIC_API_KEY="")
    assert "not-to-be-shown" not in shown.stdout
    lines = [line.split(" ", 1)[1].strip() for line in shown.stdout.splitlines()]
    assert "ok own: local-chat-completions qwen" in lines
    assert "ok large: local-chat-completions mistral · LA_CLE set" in lines
    (missing,) = (line for line in lines if "claude-x: " in line)
    assert "ANTHROPIC_API_KEY not set" in missing
    assert missing.endswith("export ANTHROPIC_API_KEY=...")


def test_doctor_names_a_model_type_that_does_not_exist_whatever_the_model_is_for(cli: Run, tmp_path: Path) -> None:
    config = """models:
  asks: {model: openai-chat, model_args: {model: m}}
  idle: {model: vlm, model_args: {pretrained: m}}
planner: asks
judges: [{model: hff, model_args: {pretrained: m}}]
"""
    (tmp_path / "mrag.yaml").write_text(config, encoding="utf-8")
    faulty = {f["topic"]: f["what"] for f in json.loads(cli("doctor", "--json").stdout) if "unknown model" in f["what"]}
    assert faulty.keys() == {"agents", "models", "judges"}
    assert "did you mean 'openai-chat-completions'?" in faulty["agents"]
    assert faulty["models"].startswith("idle: vlm m · unknown model type 'vlm'; did you mean 'vllm'?")
    assert "unknown model type 'hff'" in faulty["judges"]


def test_doctor_shows_how_to_configure_agents_or_which_there_are(cli: Run, tmp_path: Path) -> None:
    (example,) = (f["fix"] for f in json.loads(cli("doctor", "--json").stdout) if f["topic"] == "agents")
    head, *lines = example.splitlines()
    assert head == "in mrag.yaml (see docs/ir_modes.md):"
    assert (lines[0], lines[-1]) == ("models:", "critic: qwen")
    # the printed example is a config that works
    (tmp_path / "mrag.yaml").write_text("\n".join(lines), encoding="utf-8")
    shown = [f["what"] for f in json.loads(cli("doctor", "--json").stdout) if f["topic"] == "agents"]
    name = "qwen: local-chat-completions Qwen/Qwen3-235B-A22B-Instruct-2507"
    assert [text.partition(" · ")[0] for text in shown] == [f"planner {name}", f"critic {name}"]


def test_doctor_strict_fails_on_a_broken_config(cli: Run, tmp_path: Path) -> None:
    assert cli("doctor", "--strict").returncode == 0
    (tmp_path / "mrag.yaml").write_text("corpora: 3\n", encoding="utf-8")
    assert cli("doctor", "--strict").returncode == 1


@pytest.mark.slow
def test_an_index_is_built_described_and_searched(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text(
        '{"id": "a", "lang": "en", "text": "The ferry leaves at noon."}\n'
        '{"id": "b", "lang": "ko", "text": "배는 정오에 떠난다."}\n',
        encoding="utf-8",
    )
    assert cli("index", "build", "docs.jsonl", "ferry", "--kind", "bm25").returncode == 0
    described = cli("index", "info", "ferry")
    assert (described.returncode, described.stderr) == (0, "")
    assert "2 · en 1, ko 1" in described.stdout
    assert "bm25" in described.stdout
    assert json.loads(cli("index", "info", "ferry", "--json").stdout)["passages"] == 2
    assert "all as they were built" in cli("index", "info", "ferry", "--verify").stdout
    assert "all as they" in json.loads(cli("index", "info", "ferry", "--verify", "--json").stdout)["verified"]
    assert "The ferry leaves" in cli("index", "search", "ferry", "ferry").stdout
    missing = cli("index", "search", "ferry", "ferry", "--lang", "de")
    assert missing.returncode == 2
    assert "no German shard" in missing.stderr
    file = tmp_path / "ferry" / "passages" / "ko.text"
    file.write_bytes(file.read_bytes()[::-1])
    damaged = cli("index", "info", "ferry", "--verify")
    assert (damaged.returncode, damaged.stdout) == (1, "")
    assert "passages/ko.text is damaged" in damaged.stderr


@pytest.mark.slow
def test_an_index_is_loaded_into_milvus_described_and_searched(cli: Run, tmp_path: Path) -> None:
    pytest.importorskip("milvus_lite")
    (tmp_path / "docs.jsonl").write_text(
        '{"id": "a", "lang": "en", "text": "The ferry leaves at noon."}\n'
        '{"id": "b", "lang": "ko", "text": "배는 정오에 떠난다."}\n',
        encoding="utf-8",
    )
    assert cli("index", "build", "docs.jsonl", "ferry", "--kind", "bm25").returncode == 0
    loaded = cli("index", "milvus", "ferry", "--uri", "passages.db")
    assert (loaded.returncode, loaded.stderr) == (0, "")
    assert "2 passages (en 1, ko 1), counted there" in loaded.stdout
    assert "retrieval.kind=milvus,retrieval.uri=passages.db,retrieval.corpus=ferry" in loaded.stdout
    described = cli("index", "info", "ferry", "--uri", "passages.db")
    assert (described.returncode, described.stderr) == (0, "")
    assert "2 · en 1, ko 1" in described.stdout
    here = json.loads(cli("index", "info", "ferry", "--json").stdout)
    there = json.loads(cli("index", "info", "ferry", "--uri", "passages.db", "--json").stdout)
    assert (there["content_hash"], there["fingerprint"]) == (here["content_hash"], here["fingerprint"])
    found = cli("index", "search", "ferry", "ferry", "--uri", "passages.db")
    assert "The ferry leaves" in found.stdout
    assert found.stdout.split()[2] == "en"
    for arguments, said in (
        (("nobody", "ferry", "--uri", "passages.db"), "there is no index 'nobody'"),
        (("ferry", "ferry", "--uri", "passages.txt"), "is not a Milvus uri"),
    ):
        failed = cli("index", "search", *arguments)
        assert (failed.returncode, failed.stdout) == (2, "")
        assert said in failed.stderr
        assert "Traceback" not in failed.stderr
    assert cli("index", "milvus", "ferry", "--uri", "x.db", "--param", "M").returncode == 2


def test_a_run_without_a_folder_prints_the_same_tables_and_how_to_keep_them(cli: Run, tmp_path: Path) -> None:
    flags = ("--model", "dummy", "--tasks", "mrag_demo_norag", "--limit", "4")
    alone, kept = cli("run", *flags), cli("run", *flags, "--output_path", "out")
    assert (alone.returncode, kept.returncode) == (0, 0), alone.stderr + kept.stderr
    tables, step = alone.stdout.split("\nnext       ")
    assert tables.strip() == kept.stdout.partition("\nresults ")[0].strip()
    assert "char3gram_recall" in tables
    assert step.startswith("the same with --output_path OUT --log_samples")
    assert "Stderr" not in alone.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_run_takes_the_harness_s_flags_and_finds_our_tasks(cli: Run, tmp_path: Path) -> None:
    done = cli(
        "run", "--model", "dummy", "--tasks", "mrag_demo_norag", "--limit", "3", "--log_samples",
        "--output_path", "out", "--metadata", "data.language=de",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "mrag_demo_norag" in done.stdout
    assert "char3gram_recall" in done.stdout
    assert "next       mrag-eval report out -o report.html" in done.stdout
    assert "fatal: not a git repository" not in done.stderr
    (samples,) = (tmp_path / "out").rglob("samples_mrag_demo_norag_*.jsonl")
    rows = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 3
    assert {row["doc"]["query_lang"] for row in rows} == {"de"}
    (results,) = (tmp_path / "out").rglob("results_*.json")
    config = json.loads(results.read_text(encoding="utf-8"))["configs"]["mrag_demo_norag"]
    assert config["scores"]["rows"] == 3


def test_run_does_not_index_built_in_tasks_for_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from lm_eval.tasks import TaskManager

    asked: list[bool] = []
    original = TaskManager.__init__

    def spy(self: TaskManager, *args: object, include_defaults: bool = True, **kwargs: object) -> None:
        asked.append(include_defaults)
        original(self, *args, include_defaults=include_defaults, **kwargs)

    monkeypatch.setattr(TaskManager, "__init__", spy)
    harness.run(["--model", "dummy", "--tasks", "mrag_demo_norag", "--limit", "1"])
    assert asked == [False]


def test_run_of_a_yaml_file_by_path(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text(
        '{"id": "q1", "query": "Wie?", "lang": "de", "answers": ["so"]}\n', encoding="utf-8"
    )
    (tmp_path / "mine.yaml").write_text(
        "task: mine\nclass: !function mrag_eval.task.RagTask\noutput_type: generate_until\nnum_fewshot: 0\n"
        "data: {benchmark: jsonl, path: questions.jsonl}\nmetrics: [match]\nmetadata: {version: 1}\n",
        encoding="utf-8",
    )
    done = cli("run", "--model", "dummy", "--tasks", "mine.yaml")
    assert done.returncode == 0, done.stderr
    assert "mine" in done.stdout


@pytest.mark.slow
def test_run_of_an_unknown_task_suggests_the_nearest(cli: Run) -> None:
    done = cli("run", "--model", "dummy", "--tasks", "mrag_demo_monorga")
    assert done.returncode == 2
    assert "mrag_demo_monorag" in done.stderr
    assert "Traceback" not in done.stderr


def test_run_prints_tasks_that_are_not_ours_beside_ours(cli: Run, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"q": "a", "a": "b"}\n', "utf-8")
    task = {
        "task": "plain_qa", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(rows)}},
        "test_split": "test", "output_type": "generate_until", "doc_to_text": "{{q}}", "doc_to_target": "{{a}}",
        "metric_list": [{"metric": "exact_match"}],
    }  # fmt: skip
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "plain.yaml").write_text(json.dumps(task), "utf-8")
    done = cli(
        "run", "--model", "dummy", "--tasks", "mrag_demo_norag,plain_qa", "--include_path", "own", "--limit", "1",
        "--output_path", "out",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "### Scores of dummy · mrag_demo_norag" in done.stdout
    (line,) = (line for line in done.stdout.splitlines() if "plain_qa" in line)
    assert "exact_match" in line


def test_run_names_a_missing_include_path(cli: Run) -> None:
    done = cli("run", "--model", "dummy", "--tasks", "mrag_demo_norag", "--include_path", "nowhere")
    assert done.returncode == 2
    assert "nowhere" in done.stderr


def test_run_reports_a_wrong_override_before_any_model_answers(cli: Run) -> None:
    done = cli("run", "--model", "dummy", "--tasks", "mrag_demo_norag", "--metadata", "retrieval.mode=everything")
    assert done.returncode == 2
    assert "everything" in done.stderr
    assert "Traceback" not in done.stderr


def test_run_builds_the_tasks_before_it_loads_the_model(cli: Run) -> None:
    """A model that only the hub could know is never loaded: the missing corpus is reported first."""
    corpus, model = "retrieval.corpus=wikipedia", ("--model", "hf", "--model_args", "pretrained=no-such/model")
    done = cli("run", *model, "--tasks", "mrag_demo", "--metadata", corpus, HF_HUB_OFFLINE="0")
    assert done.returncode == 2
    assert "no corpus named 'wikipedia'" in done.stderr
    assert "Traceback" not in done.stderr


def test_run_refuses_an_unknown_model_type_before_it_retrieves(cli: Run) -> None:
    done = cli("run", "--model", "oracle_answr", "--tasks", "mrag_demo_monorag", "--limit", "1")
    assert done.returncode == 2
    assert "no model type 'oracle_answr'; did you mean 'oracle_answer'?" in done.stderr
    assert "e.g. --model hf" in done.stderr
    assert "retrieving" not in done.stderr
    assert "report it" not in done.stderr


def test_run_help_says_what_is_ours_and_where_the_other_options_are(cli: Run) -> None:
    done = cli("run", "--help")
    assert done.returncode == 0
    for words in ("--no-retrieve-first", "retrieval.mode", "lm_eval run --help"):
        assert words in done.stdout


def test_export_help_lists_every_format(cli: Run) -> None:
    done = cli("export", "--help")
    assert done.returncode == 0
    for name, declared in EXPORTS.items():
        assert name in done.stdout
        assert (declared.file or "a folder") in done.stdout


@pytest.mark.parametrize(
    ("fault", "code", "first"),
    [
        (ZeroDivisionError("first line\nsecond line"), 2, "mrag-eval: ZeroDivisionError: first line"),
        (AssertionError(), 2, "mrag-eval: AssertionError"),
        (KeyboardInterrupt(), 130, None),
    ],
)
def test_a_fault_of_ours_shows_no_traceback_unless_asked_for(
    fault: BaseException,
    code: int,
    first: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from mrag_eval.cli import _doctor as show
    from mrag_eval.cli import main

    def fail() -> str:
        raise fault

    monkeypatch.setattr(show, "shown_config", fail)
    with pytest.raises(SystemExit) as caught:
        main(["doctor", "--config"])
    assert caught.value.code == code
    lines = capsys.readouterr().err.splitlines()
    if first is not None:
        assert lines[0] == first
        assert len(lines) == 2
        assert "mrag-eval --debug" in lines[1]
        assert "mrag-eval doctor --json" in lines[1]
        with pytest.raises(type(fault)):
            main(["--debug", "doctor", "--config"])
