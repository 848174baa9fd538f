"""What operators can do to resources: what there is, and doing it."""

from collections.abc import Mapping
from typing import Any

from django.db import connections
from rest_framework.request import Request
from rest_framework.response import Response

from resourcepool import options
from resourcepool.database.retry import retrying
from resourcepool.exceptions import BadOption
from resourcepool.operations import OPERATIONS, DurationField, Field, Operation
from resourcepool.resources.registry import select_resources
from resourcepool.rest.access import caller, pool_of, require
from resourcepool.rest.body import body
from resourcepool.rest.errors import as_not_found
from resourcepool.rest.leases import selectors_of
from resourcepool.rest.view import View

WHICH = ("ids", "where", "all", "dry_run")


class Operations(View):
    """``GET pools/<pool>/operations``: each, with its fields."""

    def get(self, request: Request, pool: str) -> Response:
        model = pool_of(request, "view", pool)
        return Response({"operations": [describe(one) for one in operations_of(model).values()]})


class Operate(View):
    """``POST pools/<pool>/operations/<name>``: to these ``ids``, to those ``where``, or to ``all``."""

    optional_fields, allows_other_fields = WHICH, True  # the fields of the operation

    def post(self, request: Request, pool: str, name: str) -> Response:
        model = pool_of(request, "view", pool)
        operations = operations_of(model)
        with as_not_found("operation"):
            operation = operations[options.one_of("operation", name, operations)]
        require(request, operation.permission, model)
        asked = body(request, [*self.optional_fields, *(field.name for field in operation.fields)])
        dry_run = options.flag("dry_run", asked.get("dry_run", False))
        rows, answers = rows_of(model, operation, asked), answered(operation, asked, is_required=not dry_run)
        total = retrying(connections[rows.db], rows.count)
        if total > operation.max_rows:
            raise BadOption("all", total, f"at most {operation.max_rows} at once")
        changed = operation.do(rows, actor=caller(request), **answers) if total and not dry_run else 0
        return Response({"dry_run": dry_run, "found": total, "changed": changed})


def operations_of(model: Any) -> dict[str, Operation]:
    """Return all operations for this kind of resource, by their names."""
    return {name: one for name, one in OPERATIONS.items() if one.is_for(model)}


def describe(operation: Operation) -> dict[str, Any]:
    said = {"title": str(operation.title), "effect": str(operation.effect)}
    fields = [field_described(one) for one in operation.fields]
    return {"name": operation.name, **said, "permission": operation.permission, "fields": fields}


def field_described(field: Field) -> dict[str, Any]:
    about = {"name": field.name, "label": str(field.label), "needed": field.is_required}
    if isinstance(field, DurationField):
        return {**about, "type": "seconds", "help": ""}  # its help is about what pages and commands take: "2h"
    return {**about, "type": "text", "help": str(field.help)}


def rows_of(model: Any, operation: Operation, asked: Mapping[str, Any]) -> Any:
    """Return the resources that it is done to; raises BadOption unless it is clear which are meant."""
    ids, criteria = asked.get("ids", []), selectors_of(asked)
    if not isinstance(ids, list) or len(ids) > operation.max_rows:
        raise BadOption("ids", ids, f"a list of up to {operation.max_rows} primary keys")
    if [bool(ids), bool(criteria), options.flag("all", asked.get("all", False))].count(True) != 1:
        raise BadOption("ids", ids, because='say which resources: "ids", "where", or "all": true')
    rows = select_resources(model, [str(one) for one in ids], criteria)
    return operation.targets(rows, by_id=bool(ids))


def answered(operation: Operation, asked: Mapping[str, Any], *, is_required: bool) -> dict[str, Any]:
    """Return the checked values of its fields; raises BadOption, about the name in the body."""
    found = {}
    for field in operation.fields:
        try:
            found[field.name] = field.clean(asked.get(field.name), is_required=is_required)
        except BadOption as error:
            raise error.of(field.name) from None
    return found
