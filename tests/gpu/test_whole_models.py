"""All layers of public models' shapes: memory of a segment, and reuse in another order."""

import pytest
import shapes

from ..integration.engine.oracle_cases import SEPARATOR
from ..support.engine_server import together
from .dummy import alike, answer, document, with_segments

MIB = 1 << 20
MOST_MIB = {"qwen35b": 62, "ring_mini": 8.01}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    models, logs = tmp_path_factory.mktemp("models"), tmp_path_factory.mktemp("engines")
    engines = {}
    for model in MOST_MIB:
        shapes.write(models / model, model)
        engines[model] = with_segments(models / model, logs / model)
    with together(*engines.values()):
        yield engines
    for engine in engines.values():
        assert "memory leak" not in engine.log.read_text()


@pytest.mark.parametrize("model", MOST_MIB)
def test_documents_are_found_in_another_order(served, model):
    engine = served[model]
    documents = [document(1024, seed) for seed in range(4)]
    head, query = document(64, 50), document(64, 51)
    for one in documents[1:]:
        engine.generate(one, n_tokens=1)
    backwards = SEPARATOR.join([head, *reversed(documents), query])
    cold = answer(engine, backwards)
    engine.generate(SEPARATOR.join([head, *documents, query]), n_tokens=1)
    cached = engine.generate(backwards)
    again = answer(engine, backwards)
    info = engine.info
    of_operators = info["bytes"] - info["tokens"] * token_bytes(model)
    per_segment = of_operators / info["segments"] / MIB
    of_keys = 1024 * token_bytes(model) / MIB
    print(
        f"{model}: operators of a segment {per_segment:.1f} MiB, keys and values of 1024 tokens "
        f"{of_keys:.1f} MiB;",
        cached["meta_info"]["pic"],
    )
    assert cached["meta_info"]["pic"]["segments"]["hit"] == len(documents) + 1
    assert cached["output_ids"] == cold[0]
    assert alike(again, cold)
    assert per_segment <= MOST_MIB[model]


def token_bytes(model: str) -> int:
    """Of keys and values in bfloat16."""
    config = shapes.MODELS[model]()
    config = config.get("text_config", config)
    group = config.get("layer_group_size", 4)
    n_layers = config["num_hidden_layers"] // group
    return n_layers * 2 * config["num_key_value_heads"] * config["head_dim"] * 2
