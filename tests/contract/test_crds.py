"""The schema users write against and the models the operator reads it with are the same."""

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import yaml
from pydantic.fields import FieldInfo

from hypic_operator.core import names
from hypic_operator.core.api import Frozen, Spec

CRD = Path(__file__).parents[2] / "crds" / "serving.hypic.dev_hypicclusters.yaml"
REFUSED = {"spec.decode"}


def _definition() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(CRD.read_text())
    return found


def _schema() -> dict[str, Any]:
    (version,) = _definition()["spec"]["versions"]
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


def test_names_are_those_the_operator_asks_for() -> None:
    spec = _definition()["spec"]
    assert spec["group"] == names.GROUP
    assert spec["names"]["plural"] == names.PLURAL
    assert spec["names"]["kind"] == names.KIND
    assert [version["name"] for version in spec["versions"]] == [names.VERSION]
    assert _definition()["metadata"]["name"] == f"{names.PLURAL}.{names.GROUP}"


def test_every_field_that_is_read_can_be_written() -> None:
    assert READ.keys() - WRITTEN.keys() == set()


def test_every_field_that_can_be_written_is_read() -> None:
    # Below a field of type object or list that is kept as it is, the models look no deeper.
    whole = [path for path in READ if _model(READ[path].annotation) is None]
    unread = WRITTEN.keys() - READ.keys() - REFUSED
    assert {path for path in unread if not any(path.startswith(f"{p}.") for p in whole)} == set()


def test_defaults_are_the_same() -> None:
    for path, field in READ.items():
        if "default" in WRITTEN[path] and _model(field.annotation) is None:
            assert field.default == WRITTEN[path]["default"], path


def test_choices_are_the_same() -> None:
    for path, field in READ.items():
        options = get_args(field.annotation)
        literal = next((o for o in (field.annotation, *options) if get_origin(o) is Literal), None)
        if literal is not None:
            assert list(get_args(literal)) == WRITTEN[path]["enum"], path


def test_every_field_says_what_it_is_for() -> None:
    for path, field in _of_schema(_schema(), ""):
        assert field.get("description") or path == ".metadata", path


def test_every_rule_says_what_to_write_instead() -> None:
    rules = [
        rule
        for _, field in [("", _schema()), *_of_schema(_schema(), "")]
        for rule in field.get("x-kubernetes-validations", [])
    ]
    assert len(rules) > 5
    assert all(rule["message"] for rule in rules)
