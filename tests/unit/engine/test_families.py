from hypic_engine.plugin.models import families


def test_every_architecture_is_of_one_family():
    named = [name for family in families.ALL for name in family.architectures]
    assert len(named) == len(set(named))
    assert all(
        families.of([name]) is family for family in families.ALL for name in family.architectures
    )


def test_a_model_without_linear_attention_is_of_none():
    assert families.of(["LlamaForCausalLM"]) is None
    assert families.of([]) is None


def test_a_prefix_cache_beside_segments_is_for_gated_delta_networks_only():
    exact = {family.name for family in families.ALL if family.prefix_cache_is_exact}
    assert exact == {"gdn"}
