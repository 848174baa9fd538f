"""Work from programs in any language: tasks for a stream, messages for a channel."""

from rest_framework.request import Request
from rest_framework.response import Response

from resourcepool.locks import Channel
from resourcepool.locks.channels.models import Broadcast
from resourcepool.rest.access import require
from resourcepool.rest.body import body
from resourcepool.rest.errors import in_address
from resourcepool.rest.view import View
from resourcepool.taskqueue import submit
from resourcepool.taskqueue.models import Stream


class Submit(View):
    """``POST streams/<name>/submit``: a task. With a ``key`` it is safe to repeat: it is still one task."""

    def post(self, request: Request, name: str) -> Response:
        require(request, "submit", Stream)
        task = body(request, ("params", "key", "lane"), ("type",))
        with in_address("stream"):
            done = submit(name, **task)
        return Response({"key": done.key, "is_new": done.is_new}, 201 if done.is_new else 200)


class Publish(View):
    """``POST channels/<name>/publish``: a message; answered with its number."""

    def post(self, request: Request, name: str) -> Response:
        require(request, "publish", Broadcast)
        payload = body(request, (), ("payload",))["payload"]
        return Response({"number": Channel(name).publish(payload)}, 201)
