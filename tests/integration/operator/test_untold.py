"""What a Secret holds is read by pods only: the operator never has it, so it can tell nobody."""

import base64
import json
import logging

import pytest

from ...support import resources
from ...support.controllers import Controllers
from ...support.playing import Namespace
from .conftest import Operating

WORDS = ("hf_veryprivate", "sk-adminkey")
HUB = {"repo": "a/b", "tokenSecretRef": {"name": "hub", "key": "token"}}
ENV = {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "admin", "key": "key"}}}


def test_what_a_secret_holds_is_in_no_status_event_child_or_log(
    namespace: Namespace, operating: Operating, caplog: pytest.LogCaptureFixture
) -> None:
    for name, word in zip(("hub", "admin"), WORDS, strict=True):
        data = {key: base64.b64encode(word.encode()).decode() for key in ("token", "key")}
        path = f"/api/v1/namespaces/{namespace.name}/secrets"
        status, answer = namespace.server.request(
            "POST", path, {"metadata": {"name": name}, "data": data}
        )
        assert status == 201, answer
    caplog.set_level(logging.DEBUG)
    spec = {
        "model": {"name": "m", "source": {"huggingFace": HUB}},
        "prefill": {"template": {"engine": {"env": [ENV]}}},
    }
    with Controllers(namespace), operating():
        namespace.create(resources.manifest(**spec))
        namespace.until("demo", "Ready", "True")
    written = [
        namespace.get("HypicCluster", "demo"),
        *namespace.children("demo"),
        *namespace.listed("Pod"),
        *namespace.listed("Event"),
    ]
    assert len(namespace.listed("Event")) >= 2
    text = json.dumps(written) + caplog.text
    encoded = [base64.b64encode(word.encode()).decode() for word in WORDS]
    assert not [word for word in (*WORDS, *encoded) if word in text]
    about = [event.get("objectRef", {}) for event in namespace.server.audited()]
    asked = {item.get("resource") for item in about if item.get("namespace") == namespace.name}
    assert "statefulsets" in asked
    assert "secrets" not in asked
