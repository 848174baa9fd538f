"""The guards of resources and their pools."""

from tests.guards.mutation import Mutation

RESOURCES = (
    Mutation(
        "1 is taken for True among remembered orders",
        "resources/order.py",
        "*((name, type(value), value) for name, value in wishes.items())",
        "*((name, value) for name, value in wishes.items())",
        ("tests/resources/test_orders.py",),
    ),
    Mutation(
        "a holder's name is used twice",
        "resources/order.py",
        "return known.once_more()",
        "return known",
        ("tests/resources/test_orders.py",),
    ),
    Mutation(
        "quarantine without the fence",
        "resources/lease.py",
        ".filter(pk=self.pk, fence=self.fence)",
        ".filter(pk=self.pk)",
        ("tests/resources/test_quarantine.py",),
    ),
    Mutation(
        "a tag matches a part of another",
        "resources/selectors.py",
        'f" {word} "',
        "word",
        ("tests/resources/test_selectors.py",),
    ),
    Mutation(
        "acquiring in a transaction",
        "resources/desk.py",
        "if (blocks or manual) and not asked.allow_in_transaction:",
        "if False:",
        (
            "tests/resources/test_pool.py",
            "tests/resources/test_pool_statements.py",
        ),
    ),
    Mutation(
        "a loss hides an interruption",
        "resources/desk.py",
        "        lease.abandon()",
        "        lease.release()",
        ("tests/resources/test_poller.py",),
    ),
    Mutation(
        "a clean-up can be cancelled",
        "resources/threads.py",
        "        return False\n",
        "        return super().cancel(msg)\n",
        ("tests/resources/test_threads.py",),
    ),
    Mutation(
        "what nobody wants is left lying",
        "resources/threads.py",
        "        if unwanted:\n            self.undo()",
        "",
        ("tests/resources/test_threads.py",),
    ),
    Mutation(
        "an error of the line replaces an interruption",
        "resources/desk.py",
        "        elif waiter.outcome.exception() is None:\n",
        "        else:\n",
        ("tests/resources/test_interrupted.py",),
    ),
    Mutation(
        "operators' changes ask the replica",
        "resources/queryset.py",
        "rows._for_write = True",
        "rows._for_write = False",
        ("tests/resources/test_replicas.py",),
    ),
    Mutation(
        "deleting asks the replica",
        "resources/queryset.py",
        "self._for_write = True  # what",
        "self._for_write = False  # what",
        ("tests/resources/test_replicas.py",),
    ),
    Mutation(
        "a claim without autocommit",
        "resources/desk.py",
        'if is_open else connection.settings_dict["AUTOCOMMIT"]',
        "if is_open else True",
        (
            "tests/resources/test_pool.py",
            "tests/resources/test_pool_statements.py",
        ),
    ),
    Mutation(
        "a revocation does not raise the fence",
        "resources/queryset.py",
        "verbs.release_all(connections[rows.db], rows.model, held, 0.0)",
        "rows.model._base_manager.filter(pk__in=[pk for pk, _ in held]).update(busy_before=DbNow())",
        ("tests/resources/test_operating.py",),
    ),
    Mutation(
        "a revocation tells of whoever came next",
        "resources/queryset.py",
        "running = [one for one in seen if now.get(one[0]) == one[1]]",
        "running = seen",
        ("tests/resources/test_operating.py",),
    ),
    Mutation(
        "a quarantine takes from the holder",
        "resources/queryset.py",
        'self.filter(busy_before__lte=DbNow(), in_service=True) | self.filter(holder="", in_service=True)',
        "self.filter(in_service=True)",
        ("tests/resources/test_operating.py",),
    ),
)
