"""Keep what some forty scripted runs of a tree write, and compare two trees by it.

    PYTHONPATH=TREE python scripts/same_runs.py make KEPT [RUN ...]
    python scripts/same_runs.py compare KEPT OTHER

``make`` runs the commands of ``same_runs.yaml`` on the package and the worlds of the tests that PYTHONPATH names, with
a scripted server of models on 127.0.0.1, and keeps results, samples, exports, pages and what was printed. Dates,
seconds, addresses and folders are replaced by fixed words, so that two calls on one tree keep the same. ``compare``
reads the same file for keys that were renamed and for differences that are meant, and prints the others: file, key, old
value, new value. MRAG_TEST_DATA names the folder of real files.

Exit codes: 0 nothing differs; 1 something does, or a command of ``make`` failed in an unforeseen way.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

if "" in sys.path or str(Path(__file__).parent) in sys.path:
    sys.path = [place for place in sys.path if place not in ("", str(Path(__file__).parent))]

HERE = Path(__file__).resolve()
PLAN = yaml.safe_load(HERE.with_suffix(".yaml").read_text("utf-8"))

# ------------------------------------------------------------------ the models


def chosen(text: str, number: int) -> int:
    """Return one of ``number`` by the hash of a text."""
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % number


def judge(name: str, prompt: str) -> str:
    """Reply as a judge to any of the rubrics; the judges differ by their names."""
    from tests.worlds.judges import exact, lists_answers, on_claim, verdict

    draw = chosen(name + prompt, 12)
    if "<claim>" in prompt:
        label = ("supported", "contradicted", "not_found", "supported")[draw % 4]
        return on_claim(prompt, label, None if label == "not_found" else 1)
    if "<generated_answer>" in prompt:
        return exact(prompt) if draw else verdict("incorrect")
    if "<predicted_answer>" in prompt:
        return f"So. <same_meaning>{draw % 3 > 0}</same_meaning>"
    if "<previous_query>" in prompt:
        return json.dumps({"type": ("narrow", "paraphrase", "expand")[draw % 3], "why": "so"})
    if "<options>" in prompt:
        return re.findall(r"^\w\) .+$", prompt, re.MULTILINE)[draw % 3]
    if "<passage_" in prompt:
        return (
            lists_answers(prompt)
            if "<golden_answer>" in prompt
            else json.dumps({"justification": "so", "sufficient": "yes" if draw % 3 else "no"})
        )
    return ("Yes", "No")[draw % 2]


def agent(prompt: str, whole: str) -> str:
    """Reply as planner or critic of the loop."""
    if "clarity_specificity" in whole:
        scores = {name: chosen(name + prompt, 6) for name in ("relevance", "usefulness", "clarity_specificity")}
        return json.dumps({"scores": {**scores, "compatibility": 3}, "critique": "It says so."})
    if "enough_documents" in whole:
        return json.dumps({"enough_documents": chosen(prompt, 3) == 0, "reason": "More is needed."})
    pool = re.findall(r"[a-z]{2}", whole.partition("no others: ")[2].partition("\n")[0].partition("\\n")[0])
    plan: dict[str, Any] = {"language_names": [pool[chosen(prompt + part, len(pool))] for part in "ab"] if pool else []}
    if "rewritten_query" in whole:
        plan["rewritten_query"] = re.findall(r"<question>\n(.*?)\n", prompt)[0] + " bridge"
    return json.dumps(plan if chosen(prompt, 9) else "no plan")


def answer(prompt: str) -> Any:
    """Return a piece of the prompt or an option of it; at times a refusal, a cut thought, nothing, or an error."""
    from tests.worlds.model_server import Answer, said

    fate = chosen(prompt, 23)
    if fate == 0:
        return said(None, refusal="I would rather not.")
    if fate == 1:
        return said("<think>Let me see", finish="length")
    if fate == 2:
        return said("")
    if fate == 3:
        return Answer(400, {"error": {"message": "no"}})
    options = re.findall(r"^([A-Z])[.)] (.+)$", prompt, re.MULTILINE)
    words = re.findall(r"\S+", prompt)
    piece = " ".join(words[len(words) // 3 :][:12])
    if fate == 4:
        return said("<think>so</think>I do not know.")
    if "Chosen Option" in prompt:
        letter, text = options[fate % len(options)]
        return said(
            f"Cited Documents: 0, {fate % 5}\nChosen Option: {letter}) {text}\nExplanation: so it is <doc{fate % 4}>."
        )
    if options:
        letter, text = options[fate % len(options)]
        return said(f"Answer: {letter}" if fate % 2 else f"{letter}) {text}")
    towns = re.findall(r"Varga|Lindholm|Tarnow|Miravel", prompt)
    return said(f"<answer>{towns[fate % len(towns)]}</answer>" if towns else piece)


def reply(body: dict[str, Any], attempt: int) -> Any:
    """Reply as the model that the request names."""
    from tests.building.newsroom import BODY
    from tests.worlds.model_server import Answer, asked, said

    name, prompt, whole = str(body["model"]), asked(body), json.dumps(body["messages"], ensure_ascii=False)
    if name.startswith("j"):
        if name == "j2" and chosen(prompt, 7) == 0:
            return Answer(400, {"error": {"message": "no verdict today"}})
        return said(judge(name, prompt) if chosen(name + prompt, 11) else "I cannot tell.")
    if name == "translator":
        target = whole.partition(" into ")[2].partition(".")[0]
        code = {"Arabic": "ar", "German": "de", "Spanish": "es", "Chinese": "zh"}.get(target, "en")
        return said(f"<translation>{BODY[code].format(town='Varga', n=chosen(prompt, 900))}</translation>")
    if name == "reranker":
        count = len(re.findall(r"</passage_\d+>", prompt))
        return said(str([*range(count, 0, -1)]) if chosen(prompt, 5) else "All are good.")
    if name in ("planner", "critic") or any(
        word in whole for word in ("clarity_specificity", "enough_documents", "language_names")
    ):
        return said(agent(prompt, whole))
    return answer(prompt)


# ------------------------------------------------------------------ what a run needs


def prepare(what: str, which: str = "") -> None:
    """Write files into the working folder: a world of the tests, the files of a page, or a model."""
    folder = Path.cwd()
    if what == "world":
        from tests.worlds import finished_runs

        finished_runs.RUNS[which](folder, Path(os.environ["MRAG_TEST_DATA"]))
    elif what == "page":
        from tests.docs.blocks import DOCS, blocks_of

        for block in blocks_of(DOCS / which):
            if block.mark == "file":
                (folder / block.said).write_text(block.text, "utf-8")
    elif what == "nomiracl":
        from tests.worlds import nomiracl

        nomiracl.write(folder / "nomiracl")
    elif what == "logs":
        from tests.worlds import logs

        shapes = {"own.jsonl": logs.own, "ragas.csv": logs.ragas, "haystack.json": logs.haystack}
        for name, shape in {**shapes, "spans.parquet": logs.spans, "described.json": logs.described}.items():
            logs.write_log(folder / name, logs.rows_of(shape))
    elif what == "readers":
        read_all()
    elif what == "causal":
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM

        from tests.worlds.tiny_families import byte_tokenizer

        torch.manual_seed(0)
        tokenizer = byte_tokenizer(["<pad>", "<s>", "</s>"], before="<s>")
        tokenizer.chat_template = "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
        sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
        config = LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=4096, **sizes)
        LlamaForCausalLM(config).save_pretrained(folder / "model")
        tokenizer.save_pretrained(folder / "model")
    else:
        raise SystemExit(f"prepare {what}: no such function")


def read_all() -> None:
    """Call every command that reads a run, in this process; print what each prints."""
    import io
    from contextlib import redirect_stderr, redirect_stdout

    from mrag_eval.cli import main

    for command in commands(PLAN["readers"]):
        code: Any = 0
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            try:
                main(shlex.split(command))
            except SystemExit as end:
                code = end.code
        print(f"$ {command}\n{out.getvalue()}\n{err.getvalue()}\nexit code {code}\n")


class Maker:
    """All runs of a tree: copies of the data, the server, and the programs that start at once."""

    def __init__(self, home: Path, kept: Path) -> None:
        from tests import programs
        from tests.docs.stages import write_copies
        from tests.worlds.model_server import ModelServer

        self.home, self.kept, self.tree = home, kept, programs.ROOT
        data = home / "data"
        data.mkdir()
        write_copies(data, Path(os.environ["MRAG_TEST_DATA"]).resolve())
        self.programs = programs.Programs()
        self.server = ModelServer(reply)
        self.known = {"data": str(data), "url": self.server.url}

    def filled(self, text: str) -> str:
        """Fill in the places of a command or a setting."""
        for name, value in {"model": PLAN["model"], **self.known}.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    def make(self, name: str) -> None:
        """Run the commands of one run and its readers, and keep what they wrote and printed."""
        folder = self.home / "runs" / name
        folder.mkdir(parents=True)
        (folder / "mrag.yaml").write_text(self.filled(yaml.safe_dump(PLAN["config"])), "utf-8")
        for number, command in enumerate(commands(PLAN["runs"][name])):
            self.call(folder, command, f"{number}_{command.split()[0]}")
        if (folder / "out").is_dir():
            self.call(folder, "prepare readers", "readers")
        for path in sorted(folder.rglob("*")):
            relative = path.relative_to(folder)
            if (
                path.is_file()
                and relative.parts[0] not in PLAN["left_out"]
                and path.suffix not in (".sqlite", ".parquet")
            ):
                self.keep(path, self.kept / name / self.plain(str(relative)))

    def call(self, folder: Path, command: str, name: str) -> None:
        """Run a command in its folder; write what it printed, and its exit code, to ``NAME.txt`` there."""
        words = shlex.split(self.filled(command))
        found = {
            word: [str(path.relative_to(folder)) for path in sorted(folder.glob(word))]
            for word in words
            if "*." in word
        }
        words = [name for word in words for name in found.get(word, [word])]
        program = [self.programs / "mrag-eval"]
        if words[0] == "prepare":  # the last word tells the programs to load everything
            program = [self.programs / "python", str(HERE)]
            words += [""] * (3 - len(words)) + ["run"]
        if words[0] == "run":
            words += ["--log_samples", *(["--output_path", "out"] if "--output_path" not in words else [])]
        environment = {**os.environ, "MRAG_CACHE": str(folder / "cache"), "MRAG_CONFIG": str(folder / "mrag.yaml")}
        environment |= {"OPENAI_API_KEY": "none", "COLUMNS": "200", "PYTHONPATH": str(self.tree), "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            [*program, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        shown = [f"$ {command}", done.stdout, "", *lines_of(done.stderr), f"exit code {done.returncode}"]
        (folder / f"{name}.txt").write_text("\n".join(shown) + "\n", "utf-8")

    def keep(self, path: Path, target: Path) -> None:
        """Copy a file without what differs between two calls."""
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.plain(path.read_text("utf-8", errors="replace")), "utf-8")

    def plain(self, text: str) -> str:
        """Replace folders, and dates in names of files."""
        for place, word in ((self.home, "HOME"), (self.tree, "TREE"), (Path(sys.prefix), "PREFIX")):
            text = text.replace(str(place), word).replace(str(place).replace("/", "__"), word)
        return plain(text)

    def close(self) -> None:
        self.server.close()
        self.programs.close()


def plain(text: str) -> str:
    """Replace addresses, dates and seconds in a text."""
    for pattern, word in PLAN["plain"].items():
        text = re.sub(pattern, word, text)
    return text


def commands(text: str) -> list[str]:
    """Return the commands of a text, one on a line that a backslash may continue."""
    return re.sub(r"\s*\\\n\s*", " ", text).strip().split("\n")


def lines_of(printed: str) -> Iterator[str]:
    """Yield the lines of standard error that are no bars of progress."""
    for line in re.split(r"[\r\n]+", printed):
        if line.strip() and not re.search(r"\d+%\||\d+it \[|it/s\]|s/it\]", line):
            yield line


def make(kept: Path, names: list[str], workers: int | None) -> int:
    """Make runs and keep their files; return how many commands ended with a traceback."""
    unknown = {*names} - {*PLAN["runs"]}
    if unknown:
        raise SystemExit(f"no run {', '.join(sorted(unknown))}")
    names = names or list(PLAN["runs"])
    for name in names:
        shutil.rmtree(kept / name, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="same-runs-") as home:
        maker = Maker(Path(home).resolve(), kept)
        try:
            with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
                list(pool.map(maker.make, names))
        finally:
            maker.close()
    broken = [path for path in sorted(kept.rglob("*.txt")) if "Traceback" in path.read_text("utf-8")]
    for path in broken:
        print(f"a traceback: {path}")
    print(f"{len(names)} runs, {sum(path.is_file() for path in kept.rglob('*'))} files in {kept}")
    return len(broken)


# ------------------------------------------------------------------ comparing


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the dotted path of every leaf, and its value; the fields of a line that is JSON count."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, str(key).replace(".", "·")))
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from leaves(inner, (*path, str(number)))
    else:
        yield ".".join(path), value


def content(path: Path) -> dict[str, Any]:
    """Return the leaves of a kept file: of JSON its values but those that no two calls share, else its lines."""
    text = plain(path.read_text("utf-8"))
    try:
        if path.suffix in (".json", ".jsonl"):
            whole = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]
            return {key: value for key, value in leaves(whole) if not re.search(PLAN["volatile"], key)}
    except ValueError:
        pass  # its lines
    lines = (line for line in text.splitlines() if line.strip() and not re.search(PLAN["noise"], line[:300]))
    return {f"line {number}": line for number, line in enumerate(lines, 1)}


def renamed(key: str) -> str:
    """Return the new name of a key of the old tree."""
    for old, new in (PLAN["renamed"] or {}).items():
        key = re.sub(old, new, key)
    return key


def meant(file: str, key: str, was: Any, now: Any) -> str | None:
    """Return why a value may differ, or None."""
    for entry in PLAN["meant"] or ():
        if not fnmatch(file, entry.get("file", "*")) or not re.search(entry.get("key", ""), key):
            continue
        mask = entry.get("but")
        if mask is None or re.sub(mask, "", str(was)) == re.sub(mask, "", str(now)):
            return str(entry["why"])
    return None


def files_of(home: Path) -> list[Path]:
    """Return the files below a folder, in order."""
    return sorted(path for path in home.rglob("*") if path.is_file())


def compare(old: Path, new: Path, shown: int) -> int:
    """Print the differences between two folders, alike ones together; return how many are not meant."""
    places = [{plain(str(path.relative_to(home))): path for path in files_of(home)} for home in (old, new)]
    files = [{*place} for place in places]
    found: dict[str, list[tuple[str, str, Any, Any]]] = defaultdict(list)
    reasons: dict[str, int] = defaultdict(int)
    values = 0
    for file in sorted(files[0] | files[1]):
        if file not in files[0] or file not in files[1]:
            sides = [("there", "missing") if file in files[0] else ("missing", "there")]
            differing = [("the file", *side) for side in sides]
        else:
            before = {renamed(key): value for key, value in content(places[0][file]).items()}
            after = content(places[1][file])
            values += len(before.keys() | after.keys())
            if next(iter(before), "").startswith("line "):
                differing = list(of_lines([*before.values()], [*after.values()]))
            else:
                differing = [
                    (key, before.get(key, "(none)"), after.get(key, "(none)"))
                    for key in sorted(before.keys() | after.keys())
                    if repr(before.get(key, "(none)")) != repr(after.get(key, "(none)"))
                ]
        for key, was, now in differing:
            why = meant(file, key, was, now)
            if why:
                reasons[why] += 1
            else:
                kind = "line" if key.startswith("line ") else re.sub(r"\b\d+\b", "#", key)
                kind = re.sub(PLAN["tasks"], r"\1.*", kind)
                found[f"{Path(file).suffix} {kind}"].append((file, key, was, now))
    for kind, all_ in sorted(found.items()):
        runs = sorted({file.split("/")[0] for file, *_ in all_})
        print(f"{kind}: {len(all_)} differences in {len(runs)} runs ({', '.join(runs)})")
        for file, key, was, now in all_[:shown]:
            print(f"    {file} · {key}\n      - {str(was)[:300]}\n      + {str(now)[:300]}")
    for why, count in reasons.items():
        print(f"meant ({count}): {why}")
    unmeant = sum(map(len, found.values()))
    print(f"{len(files[0] & files[1])} files, {values} values; {unmeant} differences, {sum(reasons.values())} meant")
    return unmeant


def of_lines(before: list[Any], after: list[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the lines that differ between two texts."""
    from difflib import SequenceMatcher

    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            yield f"line {a + 1}", "\n".join(map(str, before[a:b])), "\n".join(map(str, after[c:d]))


def main() -> int:
    if sys.argv[1:2] == ["prepare"]:
        prepare(*[word for word in sys.argv[2:4] if word])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("kept", type=Path)
    making.add_argument("runs", nargs="*")
    making.add_argument("--workers", type=int, help="runs at once, by default one for each core")
    comparing = commands.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument("--shown", type=int, default=2, help="examples of each kind of difference")
    given = parser.parse_args()
    if given.command == "make":
        return min(make(given.kept, given.runs, given.workers), 1)
    return min(compare(given.old, given.new, given.shown), 1)


if __name__ == "__main__":
    raise SystemExit(main())
