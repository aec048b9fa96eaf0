"""The requirements of Every Eval Ever 0.3.0 for a record and its rows, as JSON Schemas written from its
specification.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TRUTH: Schema = {"type": "boolean"}
DETAILS: Schema = {"type": "object", "additionalProperties": TEXT}


def one_of(*values: str) -> Schema:
    return {"enum": list(values)}


def maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def listed(schema: Schema, least: int = 0) -> Schema:
    return {"type": "array", "items": schema, "minItems": least}


def closed(required: str, **properties: Schema) -> Schema:
    """Return the schema of an object with exactly these keys; ``required`` names the mandatory ones."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


MODEL = closed(
    "name id additional_details",
    name=TEXT,
    id=TEXT,
    developer=TEXT,
    inference_platform=TEXT,
    inference_engine=closed("", name=TEXT, version=TEXT),
    additional_details={
        **DETAILS,
        "required": ["deployment_type", "model_availability"],
        "properties": {
            "deployment_type": one_of("self_deployed", "externally_managed", "unknown"),
            "model_availability": one_of("open_weights", "closed_weights", "unknown"),
        },
    },
)
JUDGE = closed("model_info", model_info=MODEL, temperature=NUMBER, weight=NUMBER)
SOURCE: Schema = {
    "oneOf": [
        closed(
            "dataset_name source_type url",
            dataset_name=TEXT,
            source_type=one_of("url"),
            url=listed(TEXT, 1),
            additional_details=DETAILS,
        ),
        closed(
            "dataset_name source_type",
            dataset_name=TEXT,
            source_type=one_of("hf_dataset"),
            hf_repo=TEXT,
            hf_split=TEXT,
            samples_number=COUNT,
            sample_ids=listed(TEXT),
            additional_details=DETAILS,
        ),
        closed("dataset_name source_type", dataset_name=TEXT, source_type=one_of("other"), additional_details=DETAILS),
    ]
}
METRIC: Schema = {
    **closed(
        "lower_is_better",
        evaluation_description=TEXT,
        metric_id=TEXT,
        metric_name=TEXT,
        metric_kind=TEXT,
        metric_unit=TEXT,
        metric_parameters={"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}},
        lower_is_better=TRUTH,
        score_type=one_of("binary", "continuous", "levels"),
        min_score=NUMBER,
        max_score=NUMBER,
        llm_scoring=closed(
            "judges input_prompt",
            judges=listed(JUDGE, 1),
            input_prompt=TEXT,
            aggregation_method=one_of("majority_vote", "average", "weighted_average", "median"),
            additional_details=DETAILS,
        ),
        additional_details=DETAILS,
    ),
    "if": {"properties": {"score_type": {"const": "continuous"}}, "required": ["score_type"]},
    "then": {"required": ["min_score", "max_score"]},
}
UNCERTAINTY = closed(
    "",
    standard_error=closed("value", value=NUMBER, method=TEXT),
    confidence_interval=closed(
        "lower upper",
        lower=NUMBER,
        upper=NUMBER,
        confidence_level={"type": "number", "minimum": 0, "maximum": 1},
        method=TEXT,
    ),
    standard_deviation=NUMBER,
    num_samples=COUNT,
    num_bootstrap_samples=COUNT,
)
GENERATION = closed(
    "",
    generation_args=closed(
        "",
        temperature=maybe(NUMBER),
        top_p=maybe(NUMBER),
        top_k=maybe(NUMBER),
        max_tokens={"type": "integer", "minimum": 1},
        execution_command=TEXT,
        reasoning=TRUTH,
        prompt_template=TEXT,
    ),
    additional_details=DETAILS,
)
RESULT = closed(
    "evaluation_name source_data metric_config score_details",
    evaluation_result_id=TEXT,
    evaluation_name=TEXT,
    source_data=SOURCE,
    evaluation_timestamp=TEXT,
    metric_config=METRIC,
    score_details=closed("score", score=NUMBER, details=DETAILS, uncertainty=UNCERTAINTY),
    generation_config=GENERATION,
)
# A version 4 UUID.
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
RECORD = closed(
    "schema_version evaluation_id retrieved_timestamp source_metadata eval_library model_info evaluation_results",
    schema_version={"const": "0.3.0"},
    evaluation_id={"type": "string", "pattern": r"^[^/]+/.+/\d+$"},
    evaluation_timestamp=TEXT,
    retrieved_timestamp={"type": "string", "pattern": r"^\d+$"},
    source_metadata=closed(
        "source_type source_organization_name evaluator_relationship",
        source_name=TEXT,
        source_type=one_of("documentation", "evaluation_run"),
        source_organization_name=TEXT,
        source_organization_url=TEXT,
        source_organization_logo_url=TEXT,
        evaluator_relationship=one_of("first_party", "third_party", "collaborative", "other"),
        additional_details=DETAILS,
    ),
    eval_library=closed("name version", name=TEXT, version=TEXT, additional_details=DETAILS),
    model_info=MODEL,
    evaluation_results=listed(RESULT),
    detailed_evaluation_results=closed(
        "format file_path",
        format=one_of("jsonl"),
        file_path={"type": "string", "pattern": rf"^data/[^/]+/[^/]+/[^/]+/{_UUID}_samples\.jsonl$"},
        hash_algorithm=one_of("sha256", "md5"),
        checksum=TEXT,
        total_rows=COUNT,
        additional_details=DETAILS,
    ),
)
# Rows with one question and one reply.
ROW = closed(
    "schema_version evaluation_id model_id evaluation_name sample_id interaction_type input output answer_attribution "
    "evaluation",
    schema_version={"const": "0.3.0"},
    evaluation_id=TEXT,
    model_id=TEXT,
    evaluation_name=TEXT,
    evaluation_result_id=TEXT,
    sample_id=TEXT,
    sample_hash=maybe(TEXT),
    interaction_type={"const": "single_turn"},
    input=closed("raw reference", raw=TEXT, formatted=maybe(TEXT), reference=listed(TEXT), choices=maybe(listed(TEXT))),
    output=closed("raw", raw=listed(TEXT), reasoning_trace=maybe(listed(TEXT))),
    messages={"type": "null"},
    answer_attribution=listed(
        closed(
            "turn_idx source extracted_value extraction_method is_terminal",
            turn_idx=COUNT,
            source=TEXT,
            extracted_value=TEXT,
            extraction_method=TEXT,
            is_terminal=TRUTH,
        )
    ),
    evaluation=closed("score is_correct", score=NUMBER, is_correct=TRUTH),
    error=maybe(TEXT),
    metadata=maybe(DETAILS),
)
