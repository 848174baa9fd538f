"""Work from programs in any language: tasks for a stream, messages for a channel."""

from rest_framework.request import Request
from rest_framework.response import Response

from resourcepool.locks import Channel
from resourcepool.locks.channels.models import Broadcast
from resourcepool.rest.access import require
from resourcepool.rest.errors import in_address
from resourcepool.rest.view import Act
from resourcepool.taskqueue import submit
from resourcepool.taskqueue.models import Stream


class Submit(Act):
    """``POST streams/<name>/submit``: a task. With a ``key`` it is safe to repeat: it is still one task."""

    takes, needs = ("params", "key", "lane"), ("type",)
    answers = {201: "", 200: ""}

    def post(self, request: Request, name: str) -> Response:
        require(request, "submit", Stream)
        task = self.sent()
        with in_address("stream"):
            done = submit(name, **task)
        return Response({"key": done.key, "is_new": done.is_new}, 201 if done.is_new else 200)


class Publish(Act):
    """``POST channels/<name>/publish``: a message; answered with its number."""

    needs = ("payload",)
    answers = {201: ""}

    def post(self, request: Request, name: str) -> Response:
        require(request, "publish", Broadcast)
        return Response({"number": Channel(name).publish(self.sent()["payload"])}, 201)
