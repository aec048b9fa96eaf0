"""Variables, folders and a terminal that are not as the command needs them."""

from __future__ import annotations

from tests.attacks.bad_inputs.case import DEEP, UNREADABLE, Case

_SEARCH = "retrieve --tasks mine --include_path tasks -o new"
CASES = [
    Case(_SEARCH, ["MRAG_CACHE", "nobody-here"], env={"MRAG_CACHE": "~nobody-here/x"}),
    Case("corpus list", ["MRAG_CACHE", "nobody-here"], env={"MRAG_CACHE": "~nobody-here/x"}),
    Case(_SEARCH, ["rules.yaml"], env={"MRAG_CACHE": "rules.yaml"}),
    Case(_SEARCH, ["rules.yaml"], env={"MRAG_CACHE": "rules.yaml/below"}),
    Case("doctor --config", ["MRAG_CONFIG", "gone.yaml"], env={"MRAG_CONFIG": "gone.yaml"}),
    Case("doctor --config", ["MRAG_CONFIG", "nobody-here"], env={"MRAG_CONFIG": "~nobody-here/x.yaml"}),
    Case("doctor --config", ["MRAG_CONFIG", "tasks"], env={"MRAG_CONFIG": "tasks"}),
    *(
        Case(
            "doctor --config",
            ["cannot be read" if content is UNREADABLE else "wrong.yaml"],
            {"wrong.yaml": content},
            {"MRAG_CONFIG": "wrong.yaml"},
            title=f"config: {what}",
        )
        for what, content in {
            "broken": "models: [\n",
            "a list": "- a\n",
            "a text": "models\n",
            "a number": "5\n",
            "tabs": "models:\n\tx: {}\n",
            "binary": b"\xff\x00",
            "unreadable": UNREADABLE,
            "nested deeply": DEEP,
        }.items()
    ),
    Case("doctor --config", ["mrag.yaml", "nonsense"], {"mrag.yaml": "nonsense: 1\n"}, {"MRAG_CONFIG": None}),
    *(
        Case("doctor --config", ["wrong.yaml", *named], {"wrong.yaml": text}, {"MRAG_CONFIG": "wrong.yaml"}, title=text)
        for text, named in {
            "judges: [nobody]\n": ["judges", "nobody"],
            "planner: nobody\n": ["planner", "nobody"],
            "critic: nobody\n": ["critic", "nobody"],
            "models: {m: {model: hf}}\njudges: [m, m]\n": ["judges", "'m'", "twice"],
            "models: {m: {model_args: {}}}\n": ["models.m.model"],
            "models: {m: {model: hf, model_args: {api_key: k3yOf5erver9q}}}\n": ["api_key", "{env:NAME}"],
            "models: {m: {model: hf, model_args: {pat: k3yOf5erver9q}}}\n": ["'pat'", "{env:NAME}"],
            "models: {m: {model: hf, timeout: .inf}}\n": ["models.m.timeout", "finite"],
            "models: {m: {model: hf, price: {input: .nan, output: 1}}}\n": ["models.m.price.input", "finite"],
            "models: {m: {model: local-completions, model_args: {base_url: nourl}}}\n": ["models.m", "base_url"],
            "corpora: {w: {kind: milvus}}\n": ["corpora.w", "uri"],
            "corpora: {w: {kind: nope, uri: x}}\n": ["corpora.w", "nope"],
            "data: {xrg: {path: x}}\n": ["data", "xrg", "'xrag'"],
            "data: {xrag: {benchmark: mkqa}}\n": ["data.xrag.benchmark"],
            "data: {xrag: {path: true}}\n": ["data.xrag", "path"],
            "translator: {backend: nope}\n": ["translator", "nope"],
            "translator: {backend: lm}\n": ["translator", "'model'"],
        }.items()
    ),
]
