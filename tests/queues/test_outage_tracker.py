"""How long a server spares the others after an outage."""

import pytest

from resourcepool.queues.serving.snapshot import OutageTracker


class TestAbsence:
    @pytest.mark.parametrize(
        ("silence", "spare_overdue"), [(3.9, False), (4.1, True)], ids=["shorter", "longer"]
    )
    def test_a_silence_in_which_others_may_have_lapsed_spares_them_for_a_ttl(
        self, silence: float, spare_overdue: bool
    ) -> None:
        outages = OutageTracker(100.0, 6.0)
        outages.note_answer(100.0 + silence)
        assert outages.is_sparing(100.0 + silence) is spare_overdue
        for moment in (105.0, 107.0, 109.0, 111.0):
            outages.note_answer(moment)
        assert not outages.is_sparing(111.0)

    def test_its_own_work_is_no_silence(self) -> None:
        outages = OutageTracker(100.0, 6.0)
        outages.note_contact(105.0)
        outages.note_answer(106.0)
        assert not outages.is_sparing(106.0)

    def test_a_silence_that_goes_on_spares_already(self) -> None:
        assert OutageTracker(100.0, 6.0).is_sparing(104.1)

    def test_one_silence_after_the_other_does_not_spare_for_ever(self) -> None:
        """If the database or this server is slow repeatedly, dead servers must still be found."""
        outages, spared = OutageTracker(100.0, 6.0), []
        for number in range(1, 9):
            moment = 100.0 + number * 8.2
            outages.note_contact(moment - 4.2)
            outages.note_answer(moment)
            spared.append(outages.is_sparing(moment))
        assert spared == [True, False] * 4

    @pytest.mark.parametrize("works", [2.0, 5.9, 6.1, 13.0])
    @pytest.mark.parametrize("is_away", [4.2, 7.0, 13.0, 60.0])
    def test_nor_does_one_that_was_away_time_and_again_and_had_to_register_each_time(
        self, works: float, is_away: float
    ) -> None:
        now, outages, judged = 100.0, None, 0
        for _ in range(10):
            now += is_away
            outages = OutageTracker(now, 6.0, outages)
            goes_until = now + works
            while now < goes_until:
                outages.note_answer(now)
                judged += not outages.is_sparing(now)
                outages.note_contact(now)
                now += 1.0
        assert judged >= 4

    def test_an_outage_long_after_another_one_spares_again(self) -> None:
        outages = OutageTracker(100.0, 6.0, OutageTracker(90.0, 6.0))
        assert outages.is_sparing(105.9)
        outages.note_answer(104.0)
        outages.note_answer(107.0)
        assert not outages.is_sparing(107.0)
        assert OutageTracker(120.0, 6.0, outages).is_sparing(125.9)
