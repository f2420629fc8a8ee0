from local.demo.conditions import changes, is_ready, n_known, serving_pods, words


def resource(*conditions, seen=1, generation=1):
    return {
        "metadata": {"generation": generation},
        "status": {
            "observedGeneration": seen,
            "conditions": [
                {"type": name, "status": status, "reason": reason, "message": message}
                for name, status, reason, message in conditions
            ],
        },
    }


STARTING = ("Ready", "False", "EnginesStarting", "0 of 2 engines are ready")
READY = ("Ready", "True", "Serving", "a token came back")


def test_a_resource_without_status_says_nothing_and_is_not_ready():
    new = {"metadata": {"generation": 1}}
    assert words(new) == {}
    assert not is_ready(new)


def test_only_what_changed_is_shown_in_the_operators_own_words():
    before, after = words(resource(STARTING)), words(resource(READY))
    assert changes({}, before) == ["Ready False EnginesStarting: 0 of 2 engines are ready"]
    assert changes(before, before) == []
    assert changes(before, after) == ["Ready True Serving: a token came back"]


def test_ready_counts_only_when_it_is_about_the_present_spec():
    assert is_ready(resource(READY))
    assert not is_ready(resource(STARTING))
    assert not is_ready(resource(READY, seen=1, generation=2))


def pod(name, ip="10.0.0.1", ready="True", **metadata):
    return {
        "metadata": {"name": name, **metadata},
        "status": {"podIP": ip, "conditions": [{"type": "Ready", "status": ready}]},
    }


def test_pods_that_leave_or_are_not_ready_serve_nothing():
    pods = [
        pod("b"),
        pod("a", ip="10.0.0.2"),
        pod("c", ready="False"),
        pod("d", deletionTimestamp="2026-11-29T00:00:00Z"),
        {"metadata": {"name": "e"}, "status": {"phase": "Pending"}},
    ]
    assert list(serving_pods({"items": pods}).items()) == [("a", "10.0.0.2"), ("b", "10.0.0.1")]


def test_an_engine_that_a_router_does_not_know_holds_nothing_for_it():
    fleet = {"engines": [{"name": "a", "segments": 4}]}
    assert (n_known(fleet, "a"), n_known(fleet, "b")) == (4, 0)
