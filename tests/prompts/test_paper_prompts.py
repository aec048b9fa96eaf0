"""Prompts of the papers: they demand what the paper's prompt demands, and hold nothing of a benchmark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mrag_eval.core import CORAL_POOL
from mrag_eval.datasets._blend import COUNTRIES
from mrag_eval.platform import ConfigError
from mrag_eval.prompts import builtin_names, load_template, template_source
from mrag_eval.prompts._render import _ROLES

ROOT = Path(__file__).resolve().parents[2]
PROMPTS = ROOT / "mrag_eval" / "prompts"
DOC = {"id": "r", "query": "Wo liegt Varn?", "query_lang": "de"}
HIT = {"id": "p", "lang": "en", "title": "Varn", "text": "Varn lies in the north.", "date": "2024-07-01"}
# XRAG, Figure 18; The Cross-Lingual Cost, A.1; CORAL, C.1.2; BLEnD, inst-4 and pers-3 of data/prompts
NAME_NO_LANGUAGE = ("articles", "elaborate", "short_answer_line", "single_answer", "single_answer_persona")


def asked(name: str, *, name_language: bool, passages: bool = True) -> str:
    template = load_template(name, name_language=name_language)
    return "\n".join(template.render(DOC, [HIT] if passages else []))


@pytest.mark.parametrize("passages", [True, False])
@pytest.mark.parametrize("name", NAME_NO_LANGUAGE)
def test_a_prompt_whose_paper_names_no_language_names_none(name: str, passages: bool) -> None:
    assert "German" not in "\n".join(load_template(name).render(DOC, [HIT] if passages else []))


@pytest.mark.parametrize("name", NAME_NO_LANGUAGE)
def test_naming_the_language_is_a_variant(name: str) -> None:
    assert "German" in asked(name, name_language=True)
    assert load_template(name).sha256 != load_template(name, name_language=True).sha256
    plain, named = asked(name, name_language=False), asked(name, name_language=True)
    more = set(re.findall(r"\w+", named)) - set(re.findall(r"\w+", plain))
    assert more <= {"German", "this", "one", "is", "in"}


def test_a_template_that_cannot_name_the_language_refuses_to() -> None:
    with pytest.raises(ConfigError, match=r"prompt\.name_language: template 'multiple_choice' cannot name"):
        load_template("multiple_choice", name_language=True)


@pytest.mark.parametrize("path", sorted(PROMPTS.glob("*.jinja")), ids=lambda path: path.stem)
def test_no_prompt_names_a_country_of_blend(path: Path) -> None:
    source = path.read_text("utf-8")
    assert not [country for country in COUNTRIES if country.replace("_", " ") in source]


@pytest.mark.parametrize("name", builtin_names("agent"))
def test_the_agents_prompts_hold_nothing_of_the_benchmarks_they_are_used_on(name: str) -> None:
    source = template_source(name, "agent")
    assert not re.findall(r"\b(?:everyday|Korean|Korea|Greek|Persian|Chinese|Spanish)\b", source, re.IGNORECASE)
    assert not [code for code in CORAL_POOL if f'"{code}"' in source]


def test_the_page_on_prompts_has_a_section_for_every_template() -> None:
    page = (ROOT / "docs" / "evidence" / "papers.md").read_text("utf-8")
    documented = re.findall(r"`(\w+)\.jinja`", page)
    every = builtin_names() + [f"{role}_{name}" for role in _ROLES for name in builtin_names(role)]
    assert sorted(set(documented)) == sorted(every)


def sections() -> list[tuple[str, str]]:
    """Return each template that the page has a list for, with one of its quotations."""
    page = (ROOT / "docs" / "evidence" / "papers.md").read_text("utf-8")
    out = []
    for section in re.split(r"^###? ", page, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        names = re.findall(r"`(\w+)\.jinja`", heading)
        rows = [line.strip(" |").split(" | ") for line in body.splitlines() if line.startswith("| ")]
        quoted = [quote for row in rows if len(row) == 2 for quote in re.findall(r'"((?:[^"]|"ja")+)"', row[1])]
        out += [(" ".join(names), quote) for quote in quoted if names]
    return out


@pytest.mark.parametrize(("names", "quote"), sections())
def test_the_words_that_the_page_quotes_are_in_the_template(names: str, quote: str) -> None:
    files = [PROMPTS / f"{name}.jinja" for name in names.split()]
    assert any(quote in file.read_text("utf-8") for file in files)
