"""``manage.py resourcepool_drain``: take resources out of service without disturbing who has them, and back."""

import json
import threading
from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool import options as checked
from resourcepool.database.clock import monotonic
from resourcepool.leases.lock_holders import MOST, Locked
from resourcepool.management import arguments
from resourcepool.management.layout import as_text, more, plain
from resourcepool.management.operating import OperatorCommand, actor
from resourcepool.management.status_report import holdings_as_text
from resourcepool.phrases import shown
from resourcepool.resources.choice import chosen
from resourcepool.resources.queryset import LONGEST
from resourcepool.resources.state import MAX_REASON, Status
from resourcepool.status.holders import holdings, locked

PAUSE = 1.0  # seconds between two looks
LONGEST_WAIT = 7 * checked.DAY


class Command(OperatorCommand):
    about = gettext_lazy(
        "Takes resources out of service: free ones at once, held ones when their lease ends, nobody is disturbed."
        " Given by id, what is out already gets the new reason and end. With --back, returns to service what is out of"
        " service; what is quarantined, reserved or retired only by id."
    )
    example = (
        'manage.py resourcepool_drain proxy 17 18 --reason "new cable" --for 2h\n'
        'manage.py resourcepool_drain proxy --tag eu --where port=3128 --reason "moving" --wait 600\n'
        "manage.py resourcepool_drain proxy --tag eu --back"
    )
    interrupted = gettext_lazy("what was changed stays so; nobody was disturbed")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("pool", help=_("the pool (app.Model, or Model)"))
        parser.add_argument("id", nargs="*", help=_("primary keys of resources"))
        arguments.add_selection(parser)
        parser.add_argument("--all", action="store_true", help=_("the whole pool; asks first"))
        parser.add_argument(
            "--reason",
            default="",
            help=_("why, one line for the history; needed, except with --back and --dry-run"),
        )
        parser.add_argument(
            "--for",
            dest="duration",
            type=arguments.span,
            metavar="SPAN",
            help=_("back in service by itself after so long, e.g. 90s, 15m, 2h, 7d; default: until --back"),
        )
        parser.add_argument("--back", action="store_true", help=_("return to service"))
        parser.add_argument(
            "--wait",
            type=float,
            metavar="SECONDS",
            help=_("wait until none of them is held any more, at most so long"),
        )
        parser.add_argument("--yes", action="store_true", help=_("do not ask"))
        parser.add_argument("--dry-run", action="store_true", help=_("only list them"))
        parser.add_argument("--json", action="store_true", help=_("print one JSON object"))
        arguments.add_limit(parser, 20)

    def run(self, **options: Any) -> None:
        """See ``OperatorCommand``."""
        (model,) = arguments.pools(options["pool"])
        rows, wait = _chosen(model, options), _checked(options)
        meant = (_to_return if options["back"] else _to_take_out)(rows, by_id=bool(options["id"]))
        total = meant.count()
        if not options["json"]:
            self._list(meant, total, options["limit"])
        if total and options["all"] and not options["dry_run"]:
            self.ask(_("Change all %s?") % f"{total:,}", yes=options["yes"])
        listed = [{"id": row.pk, "name": str(row)} for row in meant.order_by("pk")[: options["limit"]]]
        changed = 0 if options["dry_run"] or not total else self._change(meant, options)
        if total and not options["json"]:
            self.stdout.write(_sentence(total if options["dry_run"] else changed, options))
        held = None if wait is None or options["dry_run"] else self._wait(model, rows, wait)
        if options["json"]:
            end = {"dry_run": options["dry_run"], "found": total, "changed": changed, "still_held": held}
            end["resources"] = listed
            self.stdout.write(json.dumps(end, default=as_text))
        if held:
            raise CommandError(_("%s still held; they leave service when their leases end") % f"{held:,}")
        if not total and not (wait is not None and rows.exists()):
            raise CommandError(_("nothing to do: none of them is %s") % _state(options))

    def _change(self, meant: Any, options: dict[str, Any]) -> int:
        if options["back"]:
            return int(meant.return_to_service(reason=options["reason"], actor=actor()))
        return int(meant.take_out(options["reason"], duration=options["duration"], actor=actor()))

    def _wait(self, model: Any, rows: Any, seconds: float) -> int:
        """Return how many are still held when none is, or the time is over."""
        gives_up_at, before = monotonic() + seconds, -1
        while (held := rows.draining().count()) and monotonic() < gives_up_at:
            if held != before:
                before = held
                self.stderr.write(_("%s still held") % f"{held:,}", style_func=str)
            threading.Event().wait(min(PAUSE, max(0.0, gives_up_at - monotonic())))
        if not held:
            stuck = _still_locked(model, rows)
            for one in stuck:
                self.stderr.write(plain(shown(one), 300), style_func=str)
            return len(stuck)
        if held:
            pks = list(rows.draining().values_list("pk", flat=True)[:20])
            self.stderr.write("\n".join(holdings_as_text(holdings(model, pks=pks))), style_func=str)
        return int(held)

    def _list(self, meant: Any, total: int, limit: int) -> None:
        lines = [f"{plain(row.pk)}  {plain(row)}" for row in meant.order_by("pk")[:limit]]
        for line in [*lines, *more(len(lines), total)]:
            self.stdout.write(line)


def _still_locked(model: Any, rows: Any) -> list[Locked]:
    """Return which of those that are out of service by now are locked: somebody may still use them."""
    pks = list(rows.filter(in_service=False).values_list("pk", flat=True)[:MOST])
    return locked(model, pks=pks) if pks else []


def _chosen(model: Any, options: dict[str, Any]) -> Any:
    wishes = arguments.wishes(model, options["tag"], options["where"])
    if bool(options["id"] or wishes) == options["all"]:
        raise CommandError(_("say which resources: ids, --tag or --where; or --all and none of these"))
    return chosen(model, options["id"], wishes)


def _checked(options: dict[str, Any]) -> float | None:
    """Check what is not about which resources; return for how long to wait."""
    if options["back"]:
        _refuse_beside_back(name for name in ("duration", "wait") if options[name])
    if options["reason"] or not (options["back"] or options["dry_run"]):
        checked.text("--reason", options["reason"], most=MAX_REASON)
    if options["duration"] is not None:
        checked.seconds("--for", options["duration"], least=1, most=LONGEST)
    return None if options["wait"] is None else checked.seconds("--wait", options["wait"], most=LONGEST_WAIT)


def _refuse_beside_back(names: Iterable[str]) -> None:
    for name in names:
        option = "for" if name == "duration" else name
        raise CommandError(_("--%s does not go together with --back") % option)


def _to_take_out(rows: Any, *, by_id: bool) -> Any:
    serving = rows.filter(in_service=True)
    away = (Status.OUT_OF_SERVICE, Status.QUARANTINED)
    return serving | rows.filter(status__in=away) if by_id else serving


def _to_return(rows: Any, *, by_id: bool) -> Any:
    if by_id:
        return rows.exclude(in_service=True, status=Status.IN_SERVICE)
    return rows.filter(in_service=False, status=Status.OUT_OF_SERVICE)


def _state(options: dict[str, Any]) -> str:
    return _("out of service") if options["back"] else _("in service")


def _sentence(number: int, options: dict[str, Any]) -> str:
    texts = {
        (False, False): _("Took %s out of service."),
        (False, True): _("Would take %s out of service."),
        (True, False): _("Returned %s to service."),
        (True, True): _("Would return %s to service."),
    }
    return texts[options["back"], options["dry_run"]] % f"{number:,}"
