"""The front's routes as OpenAPI, for client generators and fuzzers.

Says what the router itself needs of a body; everything else in it is the engine's to judge.
"""

import json
from typing import Any

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 1}
ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": TEXT,
                "type": TEXT,
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "integer", "null"]},
            },
        }
    },
}
PIC = {
    "type": "object",
    "properties": {
        "pic": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "enabled": {"type": "boolean"},
                "segment_ends": {"type": "array", "items": {"type": "integer", "minimum": 0}},
                "recompute": {
                    "oneOf": [
                        {"const": "all"},
                        {"type": "array", "items": {"type": "integer", "minimum": 0}},
                    ]
                },
            },
        }
    },
}
IDS = {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}}
PROMPT = {
    "oneOf": [
        {"type": "string", "minLength": 1},
        IDS,
        {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
    ]
}
PART = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": TEXT, "text": TEXT, "cache_control": {"type": "object"}},
}
MESSAGE = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": {"enum": ["system", "user", "assistant", "tool", "developer"]},
        "content": {"oneOf": [TEXT, {"type": "null"}, {"type": "array", "items": PART}]},
    },
}
SALTED = {"cache_salt": TEXT, "extra_key": TEXT}
GENERATING = {
    **SALTED,
    "stream": {"type": "boolean"},
    "max_tokens": COUNT,
    "n": {"type": "integer", "minimum": 1, "maximum": 8},
    "custom_params": PIC,
}
SAMPLING = {"type": "object", "properties": {"max_new_tokens": COUNT, "custom_params": PIC}}


def document(model: str) -> bytes:
    """The description, as JSON, for the model that is served."""
    named = {"model": {"type": "string", "const": model}}
    chat = {**named, **GENERATING, "messages": {"type": "array", "minItems": 1, "items": MESSAGE}}
    completion = {**named, **GENERATING, "prompt": PROMPT}
    generate = {
        **SALTED,
        "text": PROMPT,
        "input_ids": IDS,
        "stream": {"type": "boolean"},
        "sampling_params": SAMPLING,
    }
    tokenize = {**named, "prompt": TEXT}
    detokenize = {**named, "tokens": IDS}
    paths = {
        "/v1/chat/completions": _post("Answers a chat", chat, "model", "messages"),
        "/v1/completions": _post("Continues a prompt", completion, "model", "prompt"),
        "/generate": _post("Continues a prompt, in SGLang's terms", generate),
        "/v1/embeddings": _post("Embeds, where engines do", {**named, "input": PROMPT}, "input"),
        "/v1/models": _get("Lists the model"),
        "/v1/models/{model}": _get("Shows the model", "model"),
        "/health": _get("Whether the router lives"),
        "/accepting": _get("Whether clients should be sent here"),
        "/ready": _get("Whether a request could be served"),
        "/openapi.json": _get("This description"),
    }
    for prefix in ("", "/v1"):
        paths[f"{prefix}/tokenize"] = _post("Cuts a text into tokens", tokenize, "prompt")
        paths[f"{prefix}/detokenize"] = _post("Joins tokens", detokenize, "tokens")
    return json.dumps(
        {
            "openapi": "3.1.0",
            "info": {"title": "hypic router", "version": "1"},
            "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
            "security": [{}, {"key": []}],
            "paths": paths,
        }
    ).encode()


def _post(summary: str, properties: dict[str, Any], *required: str) -> dict[str, Any]:
    schema = {"type": "object", "required": list(required), "properties": properties}
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {"post": {"summary": summary, "requestBody": body, "responses": _responses()}}


def _get(summary: str, *names: str) -> dict[str, Any]:
    parameters = [{"name": n, "in": "path", "required": True, "schema": TEXT} for n in names]
    return {"get": {"summary": summary, "parameters": parameters, "responses": _responses()}}


def _responses() -> dict[str, Any]:
    refused = {"description": "Refused", "content": {"application/json": {"schema": ERROR}}}
    return {"200": {"description": "Answered"}, "default": refused}
