"""Faulty templates: always one line that names template and block, with a next step."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrag_eval.platform import ConfigError
from mrag_eval.prompts import load_template

DOC = {"id": "r", "query": "Where?", "query_lang": "en"}


def fault(path: Path, system: str | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_template(str(path), system).render(DOC, [])
    assert "\n" not in caught.value.message
    assert caught.value.next_step
    return caught.value


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("{{ 1 // 0 }}", "ZeroDivisionError"),
        ("{{ query + 1 }}", "TypeError"),
        ("{{ 10.0 ** 1000 }}", "OverflowError"),
        ("{{ range(10000000) | list }}", "OverflowError"),
        ("{{ query.__class__ }}", "unsafe"),
        ("{{ passages[0].text }}", "has no element 0"),
    ],
)
@pytest.mark.parametrize("block", ["system", "user"])
def test_errors_while_rendering_are_named(expression: str, named: str, block: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.jinja"
    other = "{% block user %}x{% endblock %}" if block == "system" else ""
    path.write_text(f"{other}{{% block {block} %}}{expression}{{% endblock %}}", encoding="utf-8")
    message = fault(path).message
    assert f"{path}, block '{block}'" in message
    assert named in message


@pytest.mark.parametrize(
    "reads", ["include 'other'", "import 'other' as o", "from 'other' import o", "extends 'other'"]
)
def test_a_template_is_one_file(reads: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.jinja"
    path.write_text(f"{{% {reads} %}}\n{{% block user %}}{{{{ query }}}}{{% endblock %}}", encoding="utf-8")
    (tmp_path / "other").write_text("x", encoding="utf-8")
    assert f"{path}, line 1: it reads another file" in fault(path).message


def test_a_variable_that_is_not_there_is_named_with_those_there_are(tmp_path: Path) -> None:
    path = tmp_path / "mine.jinja"
    path.write_text("{% block user %}{% if query %}x{% else %}{{ qeury }}{% endif %}{% endblock %}", encoding="utf-8")
    error = fault(path)
    assert error.message == f"prompt template {path}: 'qeury' is undefined; did you mean 'query'?"
    names = "extra, lang, language, name_language, options, passages, query"
    assert str(error.next_step) == f"its variables are {names} (docs/reference/prompts.md)"


def test_a_template_that_does_not_compile_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.jinja"
    path.write_text("{% block user %}\n{{ query\n{% endblock %}", encoding="utf-8")
    assert f"{path}, line " in fault(path).message
    path = tmp_path / "no_user.jinja"
    path.write_text("{{ query }}", encoding="utf-8")
    assert "has no block 'user'" in fault(path).message


def test_files_in_another_encoding_are_named(tmp_path: Path) -> None:
    path = tmp_path / "latin.jinja"
    path.write_bytes("{% block user %}Frage für dich{% endblock %}".encode("latin-1"))
    assert f"prompt.template: file '{path}' is not UTF-8" in fault(path).message
    system = tmp_path / "system.txt"
    system.write_bytes("für".encode("latin-1"))
    assert f"prompt.system: file '{system}' is not UTF-8" in fault(Path("short_answer"), str(system)).message
