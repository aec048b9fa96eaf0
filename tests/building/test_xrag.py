"""A set in XRAG's form, built from articles by a model that plays every part."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.building import build_xrag, read_settings
from mrag_eval.building.steps._steps import read_records, step_records
from mrag_eval.building.xrag._xrag import Built
from mrag_eval.building.xrag._xrag_records import LinkedQuestion
from mrag_eval.building.xrag._xrag_settings import XragSettings
from mrag_eval.datasets._xrag import XragBlock, load
from mrag_eval.platform import ConfigError, DataError, read_sheet, write_sheet
from tests.building.newsroom import Newsroom, TownEmbedder, article, corpus, write_corpus
from tests.building.scripted import ScriptedModel, failed
from tests.tables import single_spaced

SETTINGS: dict[str, Any] = {
    "languages": ["de", "es"],
    "articles": {"min_words": 10},
    "models": {"default": "play", "closed_book": ["older", "newer"]},
    "seed": 3,
}


class Cast:
    """The models of a build by name, created on request."""

    def __init__(self, **roles: Callable[[Any], Any]) -> None:
        self.roles = roles
        self.models: dict[str, ScriptedModel] = {}

    def __call__(self, name: str) -> Any:
        role = self.roles.get(name, Newsroom())
        return self.models.setdefault(name, ScriptedModel(role, name, whole=True))

    @property
    def asked(self) -> int:
        return sum(len(model.asked) for model in self.models.values())


def build(
    folder: Path, cast: Cast | None = None, news: list[dict[str, Any]] | None = None, **more: Any
) -> tuple[Built, list[str]]:
    said: list[str] = []
    sheets, translations = more.pop("review_sheets", ()), more.pop("translation_sheets", ())
    source = folder / "news.jsonl"
    if news is not None or not source.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_corpus(source, corpus(("en", *SETTINGS["languages"])) if news is None else news)
    built = build_xrag(
        source,
        folder / "out",
        XragSettings.model_validate({**SETTINGS, **more}),
        model_named=cast or Cast(),
        embedder=TownEmbedder(),
        review_sheets=sheets,
        translation_sheets=translations,
        say=said.append,
    )
    return built, said


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Built]:
    folder = tmp_path_factory.mktemp("made")
    return folder, build(folder)[0]


def rows_of(built: Built) -> list[dict[str, Any]]:
    assert built.output is not None
    return [json.loads(line) for line in built.output.read_text(encoding="utf-8").splitlines()]


def test_the_set_has_xrags_shape(made: tuple[Path, Built]) -> None:
    rows = rows_of(made[1])
    # six towns, one pair per town, four types: in each question language; across two languages, two pairs per town
    assert Counter((row["setting"], row["language"]) for row in rows) == {
        ("mono", "de"): 24,
        ("mono", "es"): 24,
        ("multi", "de"): 48,
        ("multi", "es"): 48,
    }
    assert Counter(row["q_type"] for row in rows) == dict.fromkeys(("aggregation", "comparison", "multihop", "set"), 36)
    for row in rows:
        lists = ("articles", "dates", "urls", "is_support", "article_order", "article_ids", "article_languages")
        assert {len(row[name]) for name in lists} == {8}
        assert row["is_support"] == [1, 1, 0, 0, 0, 0, 0, 0]
        assert sorted(row["article_order"]) == list(range(8))
        assert sorted(row["article_order"][:2]) != [0, 1]
        assert len(set(row["article_ids"])) == 8
        other = row["language"] if row["setting"] == "multi" else "en"
        assert Counter(row["article_languages"][:2]) == Counter(["en", other])
        assert Counter(row["article_languages"][2:]) == Counter([*["en"] * 3, *[other] * 3])
        assert (row["a_type"], row["crossdoc_type"]) == ("original", 2)
    assert len({row["id"] for row in rows}) == len(rows)


def test_distractors_are_older_on_the_topic_and_without_the_answer(made: tuple[Path, Built]) -> None:
    import datetime as dt

    for row in rows_of(made[1]):
        dates = [dt.date.fromisoformat(day) for day in row["dates"]]
        assert max(dates[2:]) <= min(dates[:2]) - dt.timedelta(days=14)
        # as many as there are for the same town, in each language
        town = row["articles"][0].split()[3]
        same = sum(town in text for text in row["articles"][2:])
        assert same == 6


def test_supporting_articles_are_related_and_near_in_time(made: tuple[Path, Built]) -> None:
    folder, _ = made
    pairs = list(read_records(step_records(folder / "out" / "steps", "pairs"), LinkedQuestion))
    mono = [pair for pair in pairs if pair.setting == "mono"]
    multi = [pair for pair in pairs if pair.setting == "multi"]
    assert all(set(pair.shared) >= {"halden"} and len(pair.shared) == 2 for pair in mono)
    assert all(pair.days <= 14 for pair in pairs)
    assert {pair.lang for pair in multi} == {"de", "es"}
    assert all("/en/" in pair.first and f"/{pair.lang}/" in pair.second for pair in multi)
    assert all(pair.event.split()[0] for pair in multi)


@pytest.mark.parametrize(
    ("setting", "language", "count"), [("mono", "de", 24), ("multi", "de", 48), ("multi", "es", 48)]
)
def test_the_benchmarks_loader_reads_it(made: tuple[Path, Built], setting: Any, language: Any, count: int) -> None:
    block = XragBlock(benchmark="xrag", path=made[0] / "out", setting=setting, language=language)
    docs = load(block).docs
    assert len(docs) == count
    languages = Counter(passage.lang for doc in docs for passage in doc.given_passages)
    assert languages == ({"en": count * 8} if setting == "mono" else {"en": count * 4, language: count * 4})
    assert all(sum(passage.is_gold for passage in doc.given_passages) == 2 for doc in docs)


def test_the_datasheet_says_what_was_done(made: tuple[Path, Built]) -> None:
    folder, built = made
    sheet = json.loads((folder / "out" / "datasheet.json").read_text())
    assert sheet["source"]["articles"] == {"en": 60, "de": 60, "es": 60}
    assert sheet["source"]["published"] == "2024-06-01 to 2024-09-08"
    assert sheet["file"]["rows"] == built.rows == 144
    assert sheet["people"] == "nobody has looked at these questions"
    assert set(sheet["prompts"]) >= {"topic", "summary", "questions", "answer", "holds", "translation"}
    assert set(sheet["prompts"]) >= {"judge", "closed_book"}
    # two of every pair: one per town, and two in each of two languages; all use different words
    assert sheet["summaries"] == {
        "summaries": 6 * (1 + 2 * 2) * 2,
        "fourgrams of the article, mean share": 0.0,
        "highest": 0.0,
    }
    assert sheet["models"]["without documents: newer"] == "newer (dummy newer)"
    steps = {step["name"]: step for step in sheet["steps"]}
    assert steps["pairs"]["dropped"]["pair without older articles"] > 0
    assert steps["translation"]["made"] == 144
    assert steps["topic"]["ledgers"]["play"]["calls"] == steps["topic"]["taken"]
    page = single_spaced(built.datasheet.read_text())
    assert "| multi | de | 48 | 12 | 12 | 12 | 12 | 0 |" in page
    assert "| 2 | each holds part | 144 |" in page


def test_run_again_it_asks_nothing(made: tuple[Path, Built]) -> None:
    cast = Cast()
    built, said = build(made[0], cast)
    assert cast.asked == 0
    assert built.rows == 144
    assert all(line.endswith("reused") for line in said)


def test_a_changed_limit_redoes_from_its_step_on(tmp_path: Path) -> None:
    build(tmp_path, languages=["de"], settings=["mono"])
    cast = Cast()
    _, said = build(tmp_path, cast, languages=["de"], settings=["mono"], distractors={"count": 4})
    again = [line.split()[0] for line in said if "repeating the step" in line]
    # the number of older articles that a pair needs already matters when pairs are chosen
    assert again[0] == "pairs"
    assert again[-1] == "rows"
    cast = Cast()
    settings: dict[str, Any] = {"languages": ["de"], "settings": ["mono"], "distractors": {"count": 4}}
    _, said = build(tmp_path, cast, **settings, prompts={"translation": str(_other_prompt(tmp_path))})
    assert [line.split()[0] for line in said if "repeating the step" in line] == [
        "translation",
        "translation_review",
        "rows",
    ]
    assert all("translate a question" not in prompt for prompt in cast.models["play"].asked)
    assert cast.asked == 24


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({"limits": {"question_words": 24}}, "questions"),
        ({"limits": {"copied": 0.9}}, "summaries"),
        ({"limits": {"alike": 0.9}}, "duplicates"),
        ({"answer_from": "articles"}, "answers"),
        ({"models": {"default": "play", "closed_book": ["older"]}}, "closed_book"),
        ({"seed": 4}, "sample"),
        ({"articles": {"min_words": 11}}, "articles"),
    ],
)
def test_a_step_is_repeated_if_one_of_its_inputs_changes(tmp_path: Path, changes: dict[str, Any], step: str) -> None:
    build(tmp_path, languages=["de"], settings=["mono"])
    _, said = build(tmp_path, **{"languages": ["de"], "settings": ["mono"], **changes})
    assert next(line.split()[0] for line in said if "repeating the step" in line) == step


def _other_prompt(folder: Path) -> Path:
    path = folder / "translation.jinja"
    source = Path(__file__).resolve().parents[2] / "mrag_eval" / "prompts" / "build_translation.jinja"
    path.write_text(source.read_text().replace("Give both", "Give the two"))
    return path


# ------------------------------------------------------------ filters


def test_questions_answered_without_documents_are_dropped(tmp_path: Path) -> None:
    cast = Cast(older=Newsroom(knows="Lindholm"), newer=Newsroom(knows="in all"))
    built, _ = build(tmp_path, cast, languages=["de"], settings=["mono"])
    report = {report.name: report for report in built.reports}["closed_book"]
    # of 6 towns × 4 types: all of Lindholm, and the aggregations of the other 5
    assert (report.taken, report.made, dict(report.dropped)) == (24, 15, {"answered without documents": 9})
    lines = (tmp_path / "out" / "steps" / "11_closed_book.dropped.jsonl").read_text().splitlines()
    drops = [json.loads(line) for line in lines]
    assert Counter(drop["detail"] for drop in drops) == {"older": 3, "newer": 5, "older, newer": 1}


def test_a_wrong_guess_without_documents_is_not_knowledge(tmp_path: Path) -> None:
    class Strict(Newsroom):
        def judge(self, system: str, prompt: str) -> str:
            return '{"justification": "42 is wrong", "answer": "incorrect"}'

    built, _ = build(tmp_path, Cast(older=Newsroom(knows="?"), play=Strict()), languages=["de"], settings=["mono"])
    assert built.rows == 24


def test_a_model_that_answers_everything_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="step 'closed_book' took 24 in and dropped all") as caught:
        build(tmp_path, Cast(newer=Newsroom(knows="?")), languages=["de"], settings=["mono"])
    assert "newer articles" in str(caught.value)
    assert "answered without documents 24" in (tmp_path / "out" / "datasheet.md").read_text()


def test_one_sufficient_article_is_reported(tmp_path: Path) -> None:
    class Knowing(Newsroom):
        def holds(self, system: str, prompt: str) -> str:
            found = super().holds(system, prompt)
            return "<holds>sufficient</holds>" if "some" in found and "8 trees will" in prompt else found

    built, _ = build(tmp_path, Cast(play=Knowing()), languages=["de"], settings=["mono"])
    assert {row["crossdoc_type"] for row in rows_of(built)} == {1}


def test_an_article_that_holds_nothing_drops_the_question(tmp_path: Path) -> None:
    class Blind(Newsroom):
        def holds(self, system: str, prompt: str) -> str:
            return "<holds>none</holds>"

    with pytest.raises(DataError, match=r"step 'each_article' .*not in the articles 24"):
        build(tmp_path, Cast(play=Blind()), languages=["de"], settings=["mono"])


def test_a_distractor_with_the_answer_gives_way_to_the_next(tmp_path: Path) -> None:
    class Spoiling(Newsroom):
        def holds(self, system: str, prompt: str) -> str:
            # two of the eight older articles on every town would be enough
            spoils = any(f"{n} trees will" in prompt for n in ("0", "1")) and "some" not in super().holds(
                system, prompt
            )
            return "<holds>sufficient</holds>" if spoils else super().holds(system, prompt)

    built, _ = build(tmp_path, Cast(play=Spoiling()), languages=["de"], settings=["mono"])
    for row in rows_of(built):
        assert not any("0 trees will" in text or "1 trees will" in text for text in row["articles"][2:])


class Selecting(Newsroom):
    """Two simple pairs on every summary; questions name the pairs ``selected``."""

    def __init__(self, selected: str) -> None:
        super().__init__()
        self.selected = selected

    def simple_qa(self, system: str, prompt: str) -> str:
        return super().simple_qa(system, prompt) + "<question>Since when?</question><answer>500000</answer>"

    def questions(self, system: str, prompt: str) -> str:
        asked = super().questions(system, prompt.replace("answer: 500000", ""))
        return asked.split("<pairs>")[0] + self.selected


def test_an_answer_comes_from_the_pairs_selected_for_its_question(tmp_path: Path) -> None:
    cast = Cast(play=Selecting("<pairs>A1, B1</pairs>"))
    built, _ = build(tmp_path, cast, languages=["de"], settings=["mono"])
    # XRAG, section 4.2: the scripted answer adds up the pairs' answers; with all pairs, a million too much
    assert built.rows == 24
    assert all(int(row["en_answer"].split()[0]) < 500_000 for row in rows_of(built))
    shown = [prompt for prompt in cast.models["play"].asked if "<first_date>" in prompt and "<qa_pairs>" in prompt]
    assert shown
    assert not any("Since when" in prompt for prompt in shown)


@pytest.mark.parametrize("selected", ["", "<pairs>A1, A2</pairs>", "<pairs>A1, B3</pairs>", "<pairs>both</pairs>"])
def test_a_question_without_pairs_of_both_articles_is_dropped(tmp_path: Path, selected: str) -> None:
    cast = Cast(play=Selecting(selected))
    with pytest.raises(DataError, match=r"step 'questions' .*question without selected pairs 24"):
        build(tmp_path, cast, languages=["de"], settings=["mono"])
    assert any("names at least one pair of each set" in prompt for prompt in cast.models["play"].asked)


def test_of_two_questions_the_one_without_selected_pairs_is_dropped_and_counted(tmp_path: Path) -> None:
    cast = Cast(play=Selecting("<pairs>b1 and a2</pairs><question>Which of the two is it?</question>"))
    built, _ = build(tmp_path, cast, languages=["de"], settings=["mono"])
    report = {report.name: report for report in built.reports}["questions"]
    assert (report.made, dict(report.dropped)) == (24, {"a question without selected pairs": 24})


def test_limits_are_enforced_and_reported_once_to_the_model(tmp_path: Path) -> None:
    class Wordy(Newsroom):
        def questions(self, system: str, prompt: str) -> str:
            found = super().questions(system, prompt)
            if "set questions" in system:
                return found.replace("?", " and " * 30 + "?")
            return found + "<question>" + "why " * 26 + "?</question><pairs>A1, B1</pairs>"

        def summary(self, system: str, prompt: str) -> str:
            found = super().summary(system, prompt)
            return found.replace("shade", "shade " * 200) if "Varga" in found else found

    cast = Cast(play=Wordy())
    built, _ = build(tmp_path, cast, languages=["de"], settings=["mono"])
    reports = {report.name: report for report in built.reports}
    assert reports["summaries"].dropped == {"summary too long": 1}
    assert reports["questions"].dropped == {"a question too long": 15, "question too long": 5}
    assert built.rows == 15
    assert any("at most 180 are allowed" in prompt for prompt in cast.models["play"].asked)


def test_a_copied_summary_is_dropped_unless_that_is_allowed(tmp_path: Path) -> None:
    class Copying(Newsroom):
        def summary(self, system: str, prompt: str) -> str:
            text = prompt.split("<article>")[1].split("</article>")[0]
            return f"<summary>{text}</summary>"

    with pytest.raises(DataError, match="summary copies 6"):
        build(tmp_path, Cast(play=Copying()), languages=["de"], settings=["mono"])
    built, _ = build(tmp_path, Cast(play=Copying()), languages=["de"], settings=["mono"], limits={"copied": None})
    first = next(read_records(step_records(tmp_path / "out" / "steps", "summaries"), LinkedQuestion))
    assert first.copied == (1.0, 1.0)
    assert built.rows == 24


def test_a_translation_in_another_language_is_dropped(tmp_path: Path) -> None:
    class Lazy(Newsroom):
        def translation(self, system: str, prompt: str) -> str:
            return (
                super()
                .translation(system.replace("into German", "into English"), prompt)
                .replace("<question>", "<question>How many trees will be planted by these two towns in all this year ")
            )

    built, _ = build(tmp_path, Cast(play=Lazy()), settings=["mono"])
    report = {report.name: report for report in built.reports}["translation"]
    assert report.dropped == {"translated into another language": 24}
    assert {row["language"] for row in rows_of(built)} == {"es"}


def test_an_article_whose_title_nobody_could_read_still_meets_others(tmp_path: Path) -> None:
    class Mute(Newsroom):
        def entities(self, system: str, prompt: str) -> str:
            return "I see no tags here." if "Varga" in prompt else super().entities(system, prompt)

    built, _ = build(tmp_path, Cast(play=Mute()), languages=["de"])
    report = {report.name: report for report in built.reports}["entities"]
    # ten articles per town
    assert (report.made, dict(report.dropped)) == (120, {"entities unknown: unreadable reply": 10})
    towns = Counter((row["setting"], "Varga" in row["articles"][0]) for row in rows_of(built))
    assert towns == {("mono", False): 20, ("multi", False): 40, ("multi", True): 8}


def test_calls_that_fail_are_counted_and_asked_again_next_time(tmp_path: Path) -> None:
    class Shaky(Newsroom):
        down = True

        def topic(self, system: str, prompt: str) -> Any:
            return failed() if self.down and "Varga" in prompt else super().topic(system, prompt)

        def __call__(self, conversation: Any) -> Any:
            reply = self.topic("", conversation[-1]["content"]) if "topically related" in str(conversation) else None
            return super().__call__(conversation) if reply is None else reply

    shaky = Shaky()
    built, _ = build(tmp_path, Cast(play=shaky), languages=["de"], settings=["mono"])
    assert {report.name: report for report in built.reports}["topic"].dropped == {"call failed: timeout": 1}
    assert built.rows == 20
    shaky.down = False
    cast = Cast(play=shaky)
    built, said = build(tmp_path, cast, languages=["de"], settings=["mono"])
    assert "topic        1 calls had failed: retrying those items" in said
    assert built.rows == 24


# ------------------------------------------------------------ people


def test_people_review_and_only_what_they_accept_or_correct_passes(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    options: dict[str, Any] = {"languages": ["de"], "settings": ["mono"], "review_sheets": (sheet,)}
    built, _ = build(tmp_path, **options)
    assert (built.rows, built.output, built.sheet) == (0, None, sheet)
    rows = [dict(row.cells) for row in read_sheet(sheet, ())]
    assert len(rows) == 24
    assert "The council of Lindholm" in rows[0]["document_1"]
    yes = {
        "natural": "yes",
        "answerable": "yes",
        "correct": "yes",
        "document_1_holds": "some",
        "document_2_holds": "some",
    }
    answers = [
        yes,
        {**yes, "correct": "no", "corrected_answer": "17 trees"},
        {**yes, "correct": "no"},
        {"natural": "no"},
    ]
    write_sheet(sheet, list(rows[0]), [row | answer for row, answer in zip(rows, answers * 5, strict=False)])
    built, said = build(tmp_path, **options)
    report = {report.name: report for report in built.reports}["review"]
    # 20 of 24 were filled in: 5 each accepted, corrected, wrong, unnatural
    assert report.dropped == {"review: wrong": 5, "review: unnatural": 5, "review: not reviewed": 4}
    assert Counter((row["a_type"], row["en_answer"] == "17 trees") for row in rows_of(built)) == {
        ("original", False): 5,
        ("corrected", True): 5,
    }
    assert any(line.startswith("reviewed   20 of 24 questions") for line in said)
    people = json.loads((tmp_path / "out" / "datasheet.json").read_text())["people"]
    assert people["counts"]["corrected"] == 5
    page = (tmp_path / "out" / "datasheet.md").read_text()
    assert "- reviewed 20 of 24 questions by sheet" in page
    assert "counts" not in page


def _reviewed(folder: Path, label: dict[str, str], cast: Cast | None = None) -> tuple[Built, list[dict[str, Any]]]:
    """Build with every row of the review sheet filled in as ``label``; return the build and its rows."""
    sheet = folder / "sheet.csv"
    options: dict[str, Any] = {"languages": ["de"], "settings": ["mono"], "review_sheets": (sheet,)}
    build(folder, cast, **options)
    rows = [dict(row.cells) for row in read_sheet(sheet, ())]
    assert len(rows) == 24
    write_sheet(sheet, list(rows[0]), [row | label for row in rows])
    built, _ = build(folder, cast, **options)
    return built, rows_of(built)


_SOME = {"document_1_holds": "some", "document_2_holds": "some"}
_RIGHT = {"natural": "yes", "answerable": "yes", "correct": "yes", **_SOME}
_CORRECTED = {**_RIGHT, "correct": "no", "corrected_answer": "a round dozen"}


def test_a_corrected_answer_that_a_model_knows_without_documents_is_dropped(tmp_path: Path) -> None:
    class Strict(Newsroom):
        def judge(self, system: str, prompt: str) -> str:
            verdict = "correct" if "a round dozen" in prompt else "incorrect"
            return json.dumps({"justification": "by the gold answer", "answer": verdict})

    cast = Cast(older=Newsroom(knows="?"), play=Strict())
    with pytest.raises(DataError, match="step 'closed_book_corrected' took 24 in and dropped all"):
        _reviewed(tmp_path, _CORRECTED, cast)


def test_a_corrected_answer_that_is_not_in_the_articles_is_dropped(tmp_path: Path) -> None:
    class Reading(Newsroom):
        def holds(self, system: str, prompt: str) -> str:
            return "<holds>none</holds>" if "a round dozen" in prompt else super().holds(system, prompt)

    with pytest.raises(DataError, match=r"step 'each_article_corrected' .*not in the articles 24"):
        _reviewed(tmp_path, _CORRECTED, Cast(play=Reading()))


def test_answers_that_nobody_corrected_are_not_asked_about_again(tmp_path: Path) -> None:
    built, rows = _reviewed(tmp_path, _RIGHT)
    assert len(rows) == 24
    reports = {report.name: report for report in built.reports}
    for name in ("closed_book_corrected", "each_article_corrected"):
        assert reports[name].made == 24
        assert {ledger["calls"] for ledger in reports[name].ledgers.values()} == {0}


@pytest.mark.parametrize("label", [_RIGHT, _CORRECTED])
def test_the_reviewers_labels_of_the_articles_decide_crossdoc_type(tmp_path: Path, label: dict[str, str]) -> None:
    # the model says "some" of both, which is type 2
    _, rows = _reviewed(tmp_path, {**label, "document_1_holds": "sufficient"})
    assert Counter(row["crossdoc_type"] for row in rows) == {1: 24}


def test_the_models_label_is_kept_where_reviewers_gave_none(tmp_path: Path) -> None:
    _, rows = _reviewed(tmp_path, {**_RIGHT, "document_1_holds": "", "document_2_holds": "sufficient"})
    assert Counter(row["crossdoc_type"] for row in rows) == {1: 24}


def test_a_question_whose_articles_reviewers_find_empty_is_dropped(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"step 'review' .*not in the articles 24"):
        _reviewed(tmp_path, {**_RIGHT, "document_1_holds": "none"})


def test_a_folder_of_a_build_with_fewer_steps_is_continued(tmp_path: Path) -> None:
    built, _ = build(tmp_path, languages=["de"], settings=["mono"])
    steps = tmp_path / "out" / "steps"
    for path in list(steps.glob("*_rows.*")):
        path.rename(path.with_name(f"15{path.name[2:]}"))
    built, _ = build(tmp_path, languages=["de"], settings=["mono"])
    assert built.rows == 24
    assert len(list(steps.glob("*_rows.jsonl"))) == 1


def test_people_review_translations(tmp_path: Path) -> None:
    first, second = tmp_path / "questions.csv", tmp_path / "translations.csv"
    options: dict[str, Any] = {"languages": ["de"], "settings": ["mono"]}
    options |= {"review_sheets": (first,), "translation_sheets": (second,)}
    assert build(tmp_path, **options)[0].sheet == first
    rows = [dict(row.cells) for row in read_sheet(first, ())]
    write_sheet(first, list(rows[0]), [row | _RIGHT for row in rows])
    built, _ = build(tmp_path, **options)
    assert (built.rows, built.output, built.sheet) == (0, None, second)
    rows = [dict(row.cells) for row in read_sheet(second, ())]
    assert len(rows) == 24
    assert {row["language"] for row in rows} == {"de"}
    # the sheet has the German question, and the English one to compare it with
    assert "Wie viele neue Bäume" in rows[0]["question"]
    assert "How many trees are planted in Lindholm in all" in rows[0]["document_1"]
    yes = {"natural": "yes", "answerable": "yes", "correct": "yes"}
    answers = [yes, {**yes, "correct": "no", "corrected_answer": "siebzehn Bäume"}, {**yes, "answerable": "no"}, {}]
    write_sheet(second, list(rows[0]), [row | answer for row, answer in zip(rows, answers * 6, strict=True)])
    built, said = build(tmp_path, **options)
    report = {report.name: report for report in built.reports}["translation_review"]
    assert report.dropped == {"review of translations: unanswerable": 6, "review of translations: not reviewed": 6}
    assert Counter(row["answer"] == "siebzehn Bäume" for row in rows_of(built)) == {False: 6, True: 6}
    assert not any(row["en_answer"] == "siebzehn Bäume" for row in rows_of(built))
    assert any(line.startswith("reviewed   18 of 24 questions by translations") for line in said)
    people = json.loads((tmp_path / "out" / "datasheet.json").read_text())["people_on_translations"]
    assert people["counts"]["corrected"] == 6
    # a repeated call still reads the sheet for the datasheet
    build(tmp_path, **options)
    assert "by translations" in (tmp_path / "out" / "datasheet.md").read_text()


def test_a_sheet_with_a_foreign_id_is_refused(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    options: dict[str, Any] = {"languages": ["de"], "settings": ["mono"], "review_sheets": (sheet,)}
    build(tmp_path, **options)
    rows = [dict(row.cells) for row in read_sheet(sheet, ())]
    rows[3] |= {"id": "p99-set-1", "natural": "no"}
    write_sheet(sheet, list(rows[0]), rows)
    with pytest.raises(DataError, match=r"row 5: 'p99-set-1' is not a question of this build"):
        build(tmp_path, **options)


def test_a_missing_sheet_of_two_is_reported_before_any_work(tmp_path: Path) -> None:
    cast = Cast()
    (tmp_path / "a.csv").touch()
    with pytest.raises(DataError, match=r"b\.csv: no such sheet"):
        build(tmp_path, cast, review_sheets=(tmp_path / "a.csv", tmp_path / "b.csv"))
    assert cast.asked == 0


# ------------------------------------------------------------ bad input


def test_articles_without_dates(tmp_path: Path) -> None:
    undated = [{**entry, "date_publish": None} for entry in corpus(("en",))]
    with pytest.raises(DataError, match=r"step 'articles' took 60 in and dropped all \(no date 60\)"):
        build(tmp_path, news=undated)


def test_articles_in_unknown_languages(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"unknown language 60"):
        build(tmp_path, news=[{**entry, "language": "xx"} for entry in corpus(("en",))])


def test_articles_of_one_language_only(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no two articles are related \(articles by language: en 60; none in de, es\)"):
        build(tmp_path, news=corpus(("en",)), settings=["multi"])
    # this is enough for questions over English articles
    assert build(tmp_path, settings=["mono"])[0].rows == 48


def test_no_pair(tmp_path: Path) -> None:
    far = [article(100 * n, "en", "Varga", 30 * n) for n in range(5)]
    with pytest.raises(DataError, match=r"no two articles are related \(articles by language: en 5\)") as caught:
        build(tmp_path, news=far, settings=["mono"])
    assert "pairs.max_days" in str(caught.value)


def test_pairs_without_older_articles(tmp_path: Path) -> None:
    new = [article(n, "en", "Varga", n) for n in range(5)]
    with pytest.raises(DataError, match="no pair of articles has enough older articles"):
        build(tmp_path, news=new, settings=["mono"])


def test_an_empty_corpus_and_one_without_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="step 'articles' took 0 in"):
        build(tmp_path, news=[])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"languages": ["de", "en"]}, "other than English"),
        ({"languages": ["xx"]}, "unknown language 'xx'"),
        ({"langages": ["de"]}, "unknown key 'langages'; did you mean 'languages'"),
        ({"distractors": {"count": 5}}, "even number"),
        ({"entities": {"backend": "table"}}, "requires 'path'"),
        ({"limits": {"summary_words": 0}}, "greater than or equal to 1"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = tmp_path / "build.yaml"
    path.write_text(json.dumps(changes))
    with pytest.raises(ConfigError, match=message) as caught:
        read_settings(path)
    assert str(path) in str(caught.value)
    assert "\n" not in caught.value.message


def test_models_and_prompts_are_looked_for_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no model is named for 'entities'"):
        build(tmp_path, models={})
    with pytest.raises(ConfigError, match="unknown prompt 'topics'; did you mean 'topic'"):
        build(tmp_path, prompts={"topics": "x.jinja"})
    with pytest.raises(ConfigError, match="no file"):
        build(tmp_path, prompts={"topic": str(tmp_path / "none.jinja")})
    with pytest.raises(DataError, match=r"events\.path: .*none\.txt does not exist"):
        build(tmp_path, events={"path": str(tmp_path / "none.txt")})
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").touch()
    with pytest.raises(ConfigError, match="out is a file"):
        build(tmp_path)
