"""The schema users write against and the models the operator reads it with are the same."""

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import pytest
import yaml
from pydantic.fields import FieldInfo

from hypic_operator.core import names
from hypic_operator.core.api import Frozen, Spec
from hypic_operator.core.desired import role
from hypic_operator.core.observed import Observed

from ..support import resources

CRDS = Path(__file__).parents[2] / "crds"


def _definition(plural: str = names.PLURAL) -> dict[str, Any]:
    file = CRDS / f"{names.GROUP}_{plural}.yaml"
    found: dict[str, Any] = yaml.safe_load(file.read_text())
    return found


def _schema(plural: str = names.PLURAL) -> dict[str, Any]:
    (version,) = _definition(plural)["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


def _of_schema(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from _of_schema(field, f"{path}.{name}")


def _of_model(model: type[Frozen], path: str) -> Iterator[tuple[str, FieldInfo]]:
    for field in model.model_fields.values():
        yield f"{path}.{field.alias}", field
        inner = _model(field.annotation)
        if inner is not None:
            yield from _of_model(inner, f"{path}.{field.alias}")


def _model(annotation: Any) -> type[Frozen] | None:
    options = get_args(annotation) if get_origin(annotation) in {Union, types.UnionType} else ()
    for option in (annotation, *options):
        if isinstance(option, type) and issubclass(option, Frozen):
            return option
    return None


READ = dict(_of_model(Spec, "spec"))
WRITTEN = dict(_of_schema(_schema()["properties"]["spec"], "spec"))


KINDS = {names.PLURAL: names.KIND, names.ROLE_PLURAL: names.ROLE_KIND}


@pytest.mark.parametrize(("plural", "kind"), KINDS.items())
def test_names_are_those_the_operator_asks_for(plural: str, kind: str) -> None:
    spec = _definition(plural)["spec"]
    assert spec["group"] == names.GROUP
    assert spec["names"]["plural"] == plural
    assert spec["names"]["kind"] == kind
    assert [version["name"] for version in spec["versions"]] == [names.VERSION]
    assert _definition(plural)["metadata"]["name"] == f"{plural}.{names.GROUP}"


def test_there_is_no_definition_that_the_operator_does_not_know() -> None:
    files = {file.name for file in CRDS.glob("*.yaml")}
    assert files == {f"{names.GROUP}_{plural}.yaml" for plural in KINDS}


def test_what_the_operator_writes_of_a_role_is_in_its_schema() -> None:
    cluster = resources.cluster()
    written = role.manifest(cluster, "prefill", Observed())["spec"]
    schema = _schema(names.ROLE_PLURAL)["properties"]
    assert written.keys() == schema["spec"]["properties"].keys()
    said = role.status(cluster, "prefill", Observed())
    assert said.keys() == schema["status"]["properties"].keys()


def test_the_scale_subresource_points_at_what_is_written() -> None:
    (version,) = _definition(names.ROLE_PLURAL)["spec"]["versions"]
    assert version["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }


def test_every_field_that_is_read_can_be_written() -> None:
    assert READ.keys() - WRITTEN.keys() == set()


def test_every_field_that_can_be_written_is_read() -> None:
    # Below a field of type object or list that is kept as it is, the models look no deeper.
    whole = [path for path in READ if _model(READ[path].annotation) is None]
    unread = WRITTEN.keys() - READ.keys()
    assert {path for path in unread if not any(path.startswith(f"{p}.") for p in whole)} == set()


def test_defaults_are_the_same() -> None:
    for path, field in READ.items():
        if "default" in WRITTEN[path] and _model(field.annotation) is None:
            assert _plain(field.default) == WRITTEN[path]["default"], path


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def test_choices_are_the_same() -> None:
    for path, field in READ.items():
        options = get_args(field.annotation)
        literal = next((o for o in (field.annotation, *options) if get_origin(o) is Literal), None)
        if literal is not None:
            assert list(get_args(literal)) == WRITTEN[path]["enum"], path


@pytest.mark.parametrize("plural", KINDS)
def test_every_field_says_what_it_is_for(plural: str) -> None:
    for path, field in _of_schema(_schema(plural), ""):
        assert field.get("description") or path == ".metadata", path


def test_every_rule_says_what_to_write_instead() -> None:
    rules = [
        rule
        for _, field in [("", _schema()), *_of_schema(_schema(), "")]
        for rule in field.get("x-kubernetes-validations", [])
    ]
    assert len(rules) > 5
    assert all(rule["message"] for rule in rules)
