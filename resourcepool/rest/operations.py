"""Operations of operators on resources, submission of tasks, and publication of messages."""

from collections.abc import Mapping
from typing import Any

from django.db import connections
from rest_framework.request import Request
from rest_framework.response import Response

from resourcepool import options
from resourcepool.db.retry import retrying
from resourcepool.exceptions import BadOption
from resourcepool.locks import Channel
from resourcepool.locks.channels.models import Channel as ChannelRow
from resourcepool.operations import OPERATIONS, DurationField, Field, Operation
from resourcepool.resources.registry import select_resources
from resourcepool.rest import serializers
from resourcepool.rest.leases import selectors_of
from resourcepool.rest.refusals import as_not_found, caller, pool_of, require
from resourcepool.rest.serializers import PublishRequest, SubmitRequest, Submitted
from resourcepool.rest.status import NAMED_SYSTEMS
from resourcepool.rest.view import ActionView, View, body
from resourcepool.taskqueue import submit
from resourcepool.taskqueue.models import Stream


class Operations(View):
    """``GET pools/<pool>/operations``: the operations, with their fields."""

    responses = {200: {"operations": list[serializers.Operation]}}

    def get(self, request: Request, pool: str) -> Response:
        model = pool_of(request, "view", pool)
        return Response({"operations": [describe(operation) for operation in operations_of(model).values()]})


class Operate(View):
    """``POST pools/<pool>/operations/<name>``: do it to resources by ``ids`` or ``where``, or to ``all``."""

    request_serializer = serializers.OperateRequest
    responses = {200: {"dry_run": bool, "found": int, "changed": int}}

    def post(self, request: Request, pool: str, name: str) -> Response:
        model = pool_of(request, "view", pool)
        operations = operations_of(model)
        with as_not_found("operation"):
            operation = operations[options.one_of("operation", name, operations)]
        require(request, operation.permission, model)
        data = body(request, [*self.request_serializer.names(), *(field.name for field in operation.fields)])
        dry_run = options.flag("dry_run", data.get("dry_run", False))
        rows, answers = rows_of(model, operation, data), answered(operation, data, is_required=not dry_run)
        by_id = bool(data.get("ids"))
        targets = operation.targets(rows, by_id=by_id)
        total = retrying(connections[rows.db], targets.count)
        if total > operation.max_rows:
            raise BadOption("all", total, f"at most {operation.max_rows} at once")
        parts = [] if dry_run else [rows]
        applied = operation.apply(parts, answers, actor=caller(request), found=total, by_id=by_id).or_raise()
        return Response({"dry_run": dry_run, "found": total, "changed": applied.changed})


def operations_of(model: Any) -> dict[str, Operation]:
    """Return {name: operation} for this kind of resource."""
    return {name: operation for name, operation in OPERATIONS.items() if operation.is_for(model)}


def describe(operation: Operation) -> dict[str, Any]:
    texts = {"title": str(operation.title), "effect": str(operation.effect)}
    fields = [field_described(field) for field in operation.fields]
    return {"name": operation.name, **texts, "permission": operation.permission, "fields": fields}


def field_described(field: Field) -> dict[str, Any]:
    about = {"name": field.name, "label": str(field.label), "needed": field.is_required}
    if isinstance(field, DurationField):
        return {**about, "type": "seconds", "help": ""}  # its help is about the input of pages: "2h"
    return {**about, "type": "text", "help": str(field.help)}


def rows_of(model: Any, operation: Operation, data: Mapping[str, Any]) -> Any:
    """Return the selected resources; raises BadOption unless exactly one kind of selection is given."""
    ids, criteria = data.get("ids", []), selectors_of(data)
    if not isinstance(ids, list) or len(ids) > operation.max_rows:
        raise BadOption("ids", ids, f"a list of up to {operation.max_rows} primary keys")
    if [bool(ids), bool(criteria), options.flag("all", data.get("all", False))].count(True) != 1:
        raise BadOption("ids", ids, because='choose resources by exactly one of "ids", "where", or "all": true')
    return select_resources(model, [str(pk) for pk in ids], criteria)


def answered(operation: Operation, data: Mapping[str, Any], *, is_required: bool) -> dict[str, Any]:
    """Return the validated values of the operation's fields; raises BadOption with the name in the body."""
    names = {field.option: field.name for field in operation.fields}
    try:
        return operation.clean(data, is_required=is_required)
    except BadOption as error:
        raise error.of(names.get(error.name, error.name)) from None


class OperateSystem(ActionView):
    """``POST <systems>/<name>/<operation>``: run an operation of a system on the row of this name."""

    kind = ""
    operation: Any = None
    responses = {200: {"changed": int}}

    def post(self, request: Request, name: str) -> Response:
        operation, system = self.operation, NAMED_SYSTEMS[self.kind]
        require(request, "view", *system.viewed)
        require(request, operation.permission, system.reader.model)
        data = body(request, [field.name for field in operation.fields])
        with as_not_found(system.word):
            system.reader.named(name)
        rows, answers = system.reader.rows.filter(pk=name), answered(operation, data, is_required=True)
        applied = operation.apply([rows], answers, actor=caller(request), found=1, by_id=True).or_raise()
        return Response({"changed": applied.changed})


class Submit(ActionView):
    """``POST streams/<name>/submit``: adds a task. With a ``key`` the request is safe to repeat."""

    request_serializer = SubmitRequest
    responses = {201: Submitted, 200: Submitted}

    def post(self, request: Request, name: str) -> Response:
        require(request, "submit", Stream)
        task = self.read_body()
        with as_not_found("stream"):
            done = submit(name, **task)
        return Response({"key": done.key, "is_new": done.is_new}, 201 if done.is_new else 200)


class Publish(ActionView):
    """``POST channels/<name>/publish``: publishes a message and returns its number."""

    request_serializer = PublishRequest
    responses = {201: {"number": int}}

    def post(self, request: Request, name: str) -> Response:
        require(request, "publish", ChannelRow)
        return Response({"number": Channel(name).publish(self.read_body()["payload"])}, 201)
