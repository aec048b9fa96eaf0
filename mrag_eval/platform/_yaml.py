"""YAML files: every fault of one is a line that names it."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from mrag_eval.platform._errors import ConfigError, beside
from mrag_eval.platform._files import regular

# The most values that the aliases of a file stand for: nine lines of aliases may stand for a thousand million.
_MOST_VALUES = 200_000


def read_yaml(path: Path, fix: str = "correct it, and run the same command again", *, as_text: bool = False) -> Any:
    """Return the content of a YAML file, without keys if it is empty.

    Args:
        path: the file.
        fix: what to do about a fault in it.
        as_text: leave every value as it is written, so that ``no`` is a word.

    Raises:
        ConfigError: the file cannot be read, gives a key twice, or has aliases that stand for too many values.
    """
    import yaml

    try:
        text = regular(path).read_text(encoding="utf-8")
        content = yaml.load(text, Loader=_once(as_text, aliases="&" in text))
    except OSError as err:
        raise ConfigError(
            f"{path}: cannot be read ({err.strerror}){beside(path)}", "name a readable YAML file"
        ) from None
    except RecursionError:
        raise ConfigError(f"{path}: not readable as YAML: it is nested too deeply", fix) from None
    except (yaml.YAMLError, ValueError) as err:
        raise ConfigError(f"{path}: not readable as YAML: {' '.join(str(err).split())}", fix) from None
    return content or {}


@cache
def _once(as_text: bool, aliases: bool) -> Any:
    """Return a loader that refuses a key given twice: YAML forbids it, and pyyaml takes the last."""
    import yaml

    # the C loader is faster by ten, and reads the same; texts are few enough elsewhere
    base = getattr(yaml, "CBaseLoader", yaml.BaseLoader) if as_text else yaml.SafeLoader

    class Once(base):  # type: ignore[misc, valid-type]
        def get_single_node(self) -> Any:
            nodes: dict[int, float] = {}
            root = super().get_single_node()
            if aliases and root is not None and _values_in(root, nodes) - len(nodes) > _MOST_VALUES:
                raise yaml.YAMLError(f"its aliases stand for more than {_MOST_VALUES:,} values")
            return root

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
            seen = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                    if key.value in seen:
                        raise yaml.constructor.ConstructorError(
                            None, None, f"the key '{key.value}' is given twice", key.start_mark
                        )
                    seen.add(key.value)
            found: dict[Hashable, Any] = super().construct_mapping(node, deep)
            return found

    return Once


def _values_in(node: Any, known: dict[int, float]) -> float:
    """Return the number of values below a node with every alias written out; without end for one inside itself."""
    if id(node) not in known:
        known[id(node)] = inf
        inner = node.value if isinstance(node.value, list) else ()
        parts = (part for item in inner for part in (item if isinstance(item, tuple) else (item,)))
        known[id(node)] = 1 + sum(_values_in(part, known) for part in parts)
    return known[id(node)]
