"""Keys that were read are hidden in texts on the way out, and nowhere else; a common word is no key."""

from __future__ import annotations

import base64
import html
import json
import random
import re
import string
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.platform import (
    ConfigError,
    Endpoint,
    RunFiles,
    Template,
    UnwrittenError,
    _run_files,
    _secrets,
    bare_address,
    check_address,
    hidden,
    hide,
    hub_token,
    keep_address,
    keep_header,
    keep_key,
    keep_pair,
    keep_secrets_of,
    key_in,
    marked,
    reading_back,
)
from mrag_eval.platform._secrets import is_plain, keep_secret

KEY = "s3cret/Key+0="

# ------------------------------------------------------------------------------------------------- what is hidden

keys = st.text(string.ascii_letters + string.digits + "-_./+=%&<>\"'\\äж漢 ", min_size=8, max_size=40).filter(
    lambda key: key == key.strip() and not is_plain(key)
)


def unmarked(text: str) -> str:
    """Return a text with every mark as if it told no two secrets apart."""
    return re.sub(r"\(hidden:\w+\.\w+\)", "(hidden)", text)


def written(key: str) -> list[str]:
    """Return forms in which a server or a library writes a key."""
    coded = base64.b64encode(key.encode()).decode()
    return [
        key,
        quote(key, safe=""),
        json.dumps(key)[1:-1],
        html.escape(key),
        coded,
        coded.rstrip("="),
        repr(key)[1:-1],
    ]


def documents(key: str) -> st.SearchStrategy[Any]:
    """Return JSON documents with a key in their strings, in names, and its digits in numbers."""
    form = st.sampled_from(written(key))
    text = st.one_of(st.text(max_size=20), st.builds("{}{}{}".format, st.text(max_size=5), form, st.text(max_size=5)))
    digits = int("".join(filter(str.isdigit, key)) or "7")
    number = st.one_of(st.integers(), st.floats(allow_nan=False), st.just(digits), st.just(digits / 16), st.booleans())
    return st.recursive(
        st.one_of(text, number, st.none()),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(text, inner, max_size=4)),
        max_leaves=20,
    )


def leaves(value: Any) -> Iterator[Any]:
    """Yield what a document holds in place: the names of keys as ("key", name), and every value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield "key", name
            yield from leaves(inner)
    elif isinstance(value, list):
        yield len(value)
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


@given(st.data(), keys)
def test_a_key_is_hidden_in_strings_alone(data: st.DataObject, key: str) -> None:
    _secrets._KNOWN = _secrets._Known()
    document = data.draw(documents(key))
    assert hidden(document) == document
    keep_secret(key)
    found = hidden(document)
    assert json.loads(json.dumps(found)) == found
    for before, after in zip(leaves(document), leaves(found), strict=True):
        assert type(before) is type(after)
        if isinstance(before, str):
            assert after == hide(before)
            assert not any(form in after for form in written(key))
            assert before == after or any(form in before for form in written(key))
        else:
            assert before == after


@given(st.data(), keys)
def test_results_and_samples_hold_no_key_and_parse(data: st.DataObject, key: str) -> None:
    from tempfile import TemporaryDirectory

    _secrets._KNOWN = _secrets._Known()
    keep_secret(key)
    document = {"results": data.draw(documents(key)), key: 1}
    with TemporaryDirectory() as folder:
        files = RunFiles(Path(folder))
        files.write(document, {"task": [document, document]})
        assert json.loads(files.results.read_bytes()) == hidden(document)
        assert [json.loads(line) for line in files.samples("task").open("rb")] == [hidden(document)] * 2


class Odd:
    """A value that JSON does not know."""

    def __str__(self) -> str:
        return f"odd {KEY}"


def test_a_value_that_json_does_not_know_is_hidden_in_its_form_there() -> None:
    assert hidden([Odd()], str)[0] != "odd"
    keep_secret(KEY)
    assert hidden({"a": [Odd(), {1: (KEY,)}]}, str) == {"a": ["odd (hidden)", {1: ["(hidden)"]}]}


@pytest.mark.parametrize("what", ["results", "samples"])
def test_a_file_that_does_not_hold_what_was_written_is_rescued(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _run_files.replaced

    @contextmanager
    def cut(path: Path, family: str) -> Iterator[Path]:
        with whole(path, family) as part:
            yield part
            if path.name.startswith(what) and path.parent == tmp_path:
                part.write_bytes(part.read_bytes()[:-3])

    files = RunFiles(tmp_path)
    monkeypatch.setattr(_run_files, "replaced", cut)
    with pytest.raises(UnwrittenError) as caught:
        files.write({"results": {"a": 1}}, {"task": [{"doc_id": 0}]})
    assert "cannot be read back" in caught.value.message
    assert f"{what}_" in caught.value.message
    (rescued,) = re.findall("they are in (.*)$", caught.value.message)
    (results,) = Path(rescued).glob("results_*.json")
    assert json.loads(results.read_bytes()) == {"results": {"a": 1}}


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DB_PASSWORD", "engineer"),
        ("TEST_PASSWORD", "11111111"),
        ("CACHE_KEY", "char3gram_recall"),
        ("SORT_KEY", "passages"),
        ("SOME_API_KEY", "a-real-one-0123456789abcdef"),
        ("HF_TOKEN", "hf_0123456789abcdef0123456789abcdef"),
    ],
)
def test_a_variable_is_no_key_because_of_its_name(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    text = f"the {value} of the port"
    assert hide(text) == text
    assert hidden({value: [text, 11111111]}) == {value: [text, 11111111]}


@pytest.mark.parametrize("shown", written("abc/def+1'\"<ключ>"))
def test_encoded_forms_are_hidden(shown: str) -> None:
    keep_secret("abc/def+1'\"<ключ>")
    assert hide(f"it is {shown}!").startswith("it is (hidden)")
    assert "def" not in hide(shown)


# ----------------------------------------------------------------------------------------- what can be told from text

PLAIN = [
    "a", "1234567", "engineer", "11111111", "char3gram_recall", "passages", "password", "Passwort!", "2024-01-01",
    "judge_correct", "kingfisher", "correct horse", "CorrectHorse", "xquad_rag_de", "true", "English", "99999999999",
    "hunter22", "secret123", "ключ-слово", "abababababababababab", "OPENAI_API_KEY",
]  # fmt: skip


@pytest.mark.parametrize("word", PLAIN)
def test_words_names_and_numbers_are_plain(word: str) -> None:
    assert is_plain(word)


@pytest.mark.parametrize(
    "key",
    ["sk-hunter2", "Tr0ub4dor&3", "s3cret-token", "correct horse battery staple", "0f5c2a7e91b84d36", "x7Kq-Pz9w"],
)
def test_keys_are_not(key: str) -> None:
    assert not is_plain(key)


@pytest.mark.parametrize(("size", "most"), [(8, 20), (12, 4), (16, 0), (32, 0)])
def test_hardly_any_random_key_is_plain(size: int, most: int) -> None:
    raw = [random.Random(seed).randbytes(size) for seed in range(2000)]
    assert sum(is_plain(key.hex()) for key in raw) <= most
    assert sum(is_plain(base64.urlsafe_b64encode(key).decode().rstrip("=")) for key in raw) <= most


# What servers demand, and what stands in for a key where none is needed.
COMMON = [
    "engineer", "11111111", "char3gram_recall", "passages", "pw", "EMPTY", "none", "dummy", "dummy-key-dummy",
    "not-needed", "sk-1234", "sk-xxx", "key", "abc", "localai", "sglang", "token-abc123", "sk-no-key-required",
]  # fmt: skip


# Every place that reads a key: what it is given, and how its line begins; empty where the address hides it.
READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "variable": (lambda key: key_in("MINE", "model 'm'"), "model 'm': the environment variable MINE"),
    "key": (lambda key: keep_key(key, "the token"), "the token"),
    "pair": (lambda key: keep_pair(f"root:{key}", "Milvus"), "Milvus"),
    "bearer": (lambda key: keep_header("Authorization", f"Bearer {key}", "header"), "header"),
    "basic": (
        lambda key: keep_header("Authorization", f"Basic {base64.b64encode(f'u:{key}'.encode()).decode()}", "header"),
        "header",
    ),
    "key header": (lambda key: keep_header("X-Goog-Api-Key", key, "header"), "header"),
    "endpoint": (
        lambda key: Endpoint("model 'm'", "http://host/v1", {"api-key": key}),
        "model 'm': the value of the header api-key",
    ),
    "password": (lambda key: check_address(f"http://u:{quote(key, safe='')}@host/v1", "base_url"), ""),
    "parameter": (lambda key: check_address(f"http://host/v1?a=b&api-key={quote(key)}", "base_url"), ""),
    "argument": (lambda key: keep_secrets_of({"auth_token": key}, "--model_args"), "--model_args auth_token"),
    "argument's header": (
        lambda key: keep_secrets_of({"header": {"Authorization": f"Bearer {key}"}}, "--model_args"),
        "--model_args header Authorization",
    ),
    "hub": (lambda key: hub_token(), "the token for the hub"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("word", COMMON)
def test_every_reader_takes_a_common_word_and_says_where_it_is_hidden(
    reader: str, word: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read, where = READERS[reader]
    for variable in ("MINE", "HF_TOKEN"):
        monkeypatch.setenv(variable, word)
    with caplog.at_level("INFO", "lm_eval"):
        read(word)
        read(word)
    lines = [line for line in caplog.messages if "short or a common word" in line]
    assert [line.startswith(where) for line in lines] == ([True] if where else [])
    text = f"one {word} of {word}"
    assert hide(text) == text
    assert hidden({"text": text, word: word}) == {"text": text, word: word}
    if where:
        assert hide(f"Bearer {word}, bearer {word}") == "Bearer (hidden), bearer (hidden)"
        assert hide(f"Bearer {word}er") == f"Bearer {word}er"
    else:
        shown = hide(f"http://u:{word}@host/v1?api-key={word}&a")
        assert not (f":{word}@" in shown and f"={word}&" in shown)


@pytest.mark.parametrize("name", ["api_key", "auth_token", "X-Goog-Api-Key", "api-key"])
def test_a_common_word_is_hidden_behind_its_name(name: str) -> None:
    keep_key("sk-1234", None, name)
    for text in (f"{name}=sk-1234", f"{name}: sk-1234", f'{{"{name}": "sk-1234"}}', repr({name: "sk-1234"})):
        assert "sk-1234" not in hide(f"<{text},x>")
    assert hide(json.dumps(json.dumps({name: "sk-1234"}))).count("sk-1234") == 0
    assert hidden({"model_args": {name: "sk-1234", "model": "sk-1234"}}) == {
        "model_args": {name: "(hidden)", "model": "sk-1234"}
    }


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_hides_a_key(reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("MINE", "HF_TOKEN"):
        monkeypatch.setenv(variable, KEY)
    READERS[reader][0](KEY)
    assert unmarked(hide(f"<{KEY}> {quote(KEY, safe='')}")) == "<(hidden)> (hidden)"


def test_public_headers_and_common_words_in_other_headers_stay() -> None:
    headers = {"anthropic-version": "2023-06-01", "X-Title": "a page of ours, in ten languages", "X-Team": "engineer"}
    Endpoint("m", "http://host/v1", headers)
    text = " ".join(headers.values())
    assert hide(text) == text


def test_settings_of_a_file_are_searched_for_secrets_quietly() -> None:
    keep_secrets_of(
        {
            "models": [{"header": {"X-A-Key": "header-va1ue-0", "Content-Type": "application/json"}}],
            "hf_token": "t0ken-va1ue",
            "secret": "passages",
            "api_key_env": "NAME_OF_A_VARIABLE",
            "url": "https://me:p4ss%2Fw0rd@h/x?api-key=p4ram-va1ue&api-version=2024-05-01-preview&q=visible",
            "max_tokens": "pl4in-t3xt",
        }
    )
    text = "header-va1ue-0 t0ken-va1ue p4ss%2Fw0rd p4ss/w0rd p4ram-va1ue"
    assert unmarked(hide(text)) == " ".join(["(hidden)"] * 5)
    assert hide("secret: passages") == "secret: (hidden)"
    plain = "application/json NAME_OF_A_VARIABLE visible pl4in-t3xt passages 2024-05-01-preview"
    assert hide(plain) == plain


# -------------------------------------------------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    ("address", "bare"),
    [
        ("http://u:pw@host:1/v1", "http://host:1/v1"),
        ("openai:m@https://u:p%40w@host/v1?key=a&b=c", "openai:m@https://host/v1?key=(hidden)&b=(hidden)"),
        (
            "http://host/v1?X-Amz-Signature=c&max_tokens=5#e",
            "http://host/v1?X-Amz-Signature=(hidden)&max_tokens=5#(hidden)",
        ),
        ('{"base_url": "http://u:(hidden)@host/v1?sig=x"}', '{"base_url": "http://host/v1?sig=(hidden)"}'),
        ("http://(hidden)@host/v1", "http://host/v1"),
        (
            "http://host/v1?v=2024-05-01-preview&w=v1.2&stream=true&p=8080",
            "http://host/v1?v=2024-05-01-preview&w=v1.2&stream=true&p=8080",
        ),
        *(
            (f"http://host/{way}=abc", f"http://host/{way}=(hidden)")
            for way in ("?code", "?pwd", "?pass", "?auth", "?jwt", "?session", "?ticket", "#token", "?a=1&zugang")
        ),
        ("http://host/search?code={env:FUNCTION}", "http://host/search?code={env:FUNCTION}"),
        ("http://host/bot8412:AAHdqTcvCH1vGWJxfSe/ask", "http://host/(hidden)/ask"),
        ("http://host/9f86d081884c7d659a2feaa0c55ad015/ask", "http://host/(hidden)/ask"),
        (
            "http://host/models/Meta-Llama-3.1-8B-Instruct-AWQ-INT4/gpt-4o-2024-08-06/v1beta1",
            "http://host/models/Meta-Llama-3.1-8B-Instruct-AWQ-INT4/gpt-4o-2024-08-06/v1beta1",
        ),
        ("me@example.org", "me@example.org"),
        ("Is 5 & 6 = 11?", "Is 5 & 6 = 11?"),
    ],
)
def test_bare_addresses(address: str, bare: str) -> None:
    assert unmarked(bare_address(address)) == bare
    assert bare_address(bare) == bare
    assert bare_address(bare_address(address)) == bare_address(address)


@given(st.from_regex(r"\A[A-Za-z0-9%._~!$*+,;=-]{1,20}\Z"), st.from_regex(r"\A[A-Za-z0-9%._~!$*+,;:-]{0,20}\Z"))
def test_an_address_is_the_same_whatever_its_secrets(user: str, password: str) -> None:
    assert bare_address(f"http://{user}:{password}@host/v1?a=1") == "http://host/v1?a=1"


def test_two_addresses_stay_two_and_the_mark_of_one_is_always_the_same() -> None:
    one, other = (f"http://host/v1?code={value}" for value in ("Zx81-first-va1ue", "Zx81-other-va1ue"))
    assert bare_address(one) == bare_address(one) != bare_address(other)
    assert hide(keep_address(one)) == bare_address(one)
    # also where a text may hold the value by chance
    assert hide(keep_address("http://host/v1?code=abc")) == bare_address("http://host/v1?code=abc")
    assert hide("abc, and the code is abc") == "abc, and the code is abc"


# -------------------------------------------------------------------------------------------------------- variables


def test_a_variable_is_read_where_it_is_sent_and_shown_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCTION_CODE", "q8Zr-planted-c0de")
    monkeypatch.setenv("SHORT_CODE", "abc")
    for name, value in (("FUNCTION_CODE", "q8Zr-planted-c0de"), ("SHORT_CODE", "abc")):
        written = f"http://host/search?code={{env:{name}}}"
        endpoint = Endpoint("s", written, {"X-Code": f"{{env:{name}}}"})
        assert endpoint.url == f"http://host/search?code={value}"
        assert endpoint.headers == {"X-Code": value}
        assert hide(endpoint.url) == written
    body = Template.of({"q": "{query}", "pat": "{env:FUNCTION_CODE}"}, ("query",), "query").with_variables("s")
    # the text of a row reads none
    asked = body.filled({"question": "{env:FUNCTION_CODE}"})
    assert asked == {"q": "{env:FUNCTION_CODE}", "pat": "q8Zr-planted-c0de"}
    assert hidden(asked) == dict.fromkeys(asked, "{env:FUNCTION_CODE}")
    # by which runs are compared
    before = marked("{env:FUNCTION_CODE}")
    monkeypatch.setenv("FUNCTION_CODE", "another")
    assert marked("{env:FUNCTION_CODE}") != before


def test_a_variable_that_is_not_set_or_that_a_file_names_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^s: the environment variable NOT_SET_HERE is not set\s"):
        Endpoint("s", "http://host/{env:NOT_SET_HERE}", {})
    with reading_back(tmp_path / "results.json"), pytest.raises(ConfigError) as refused:
        Endpoint("s", "http://host/v1", {"X": "{env:PATH}"})
    assert "names the variable '{env:PATH}', and a file from elsewhere reads none" in refused.value.message


def test_a_common_word_is_hidden_only_with_its_address() -> None:
    address = keep_address("http://u:pw@host/v1")
    assert hide(f"the pw of {address}") == "the pw of http://(hidden)@host/v1"
    address = keep_address("http://u:Tr0ub4dor&3@host/v1")
    assert hide(f"Tr0ub4dor&3 of {address}") == "(hidden) of http://(hidden)@host/v1"
