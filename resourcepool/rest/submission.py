"""Submission of tasks and publication of messages by programs in any language."""

from rest_framework.request import Request
from rest_framework.response import Response

from resourcepool.locks import Channel
from resourcepool.locks.channels.models import Channel as ChannelRow
from resourcepool.rest.access import require
from resourcepool.rest.errors import as_not_found
from resourcepool.rest.serializers import PublishRequest, SubmitRequest, Submitted
from resourcepool.rest.view import ActionView
from resourcepool.taskqueue import submit
from resourcepool.taskqueue.models import Stream


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
