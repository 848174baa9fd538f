"""The example of a lock does what it says."""

from tests.demo.examples import printed_by


def test_the_lock_of_a_killed_process_goes_to_the_one_that_waits() -> None:
    printed = printed_by("locks")
    killed, has_it = printed.splitlines()
    assert killed.startswith("kill -9 node-")
    assert has_it.endswith("has it, with a greater fence")
    assert killed.split()[2].strip(",") != has_it.split()[0]
