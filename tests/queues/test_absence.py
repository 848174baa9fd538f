"""How long a server that was silent spares the others."""

import pytest

from resourcepool.queues.serving.snapshot import Absence


class TestAbsence:
    @pytest.mark.parametrize(("silence", "spares"), [(3.9, False), (4.1, True)], ids=["shorter", "longer"])
    def test_a_silence_in_which_others_may_have_lapsed_spares_them_for_a_ttl(
        self, silence: float, spares: bool
    ) -> None:
        absence = Absence(100.0, 6.0)
        absence.has_answered(100.0 + silence)
        assert absence.spares(100.0 + silence) is spares
        for moment in (105.0, 107.0, 109.0, 111.0):
            absence.has_answered(moment)
        assert not absence.spares(111.0)

    def test_its_own_work_is_no_silence(self) -> None:
        absence = Absence(100.0, 6.0)
        absence.goes_on(105.0)
        absence.has_answered(106.0)
        assert not absence.spares(106.0)

    def test_a_silence_that_goes_on_spares_already(self) -> None:
        assert Absence(100.0, 6.0).spares(104.1)

    def test_one_silence_after_the_other_does_not_spare_for_ever(self) -> None:
        """Where the database, or this server, is slow time and again, somebody has to judge."""
        absence, spared = Absence(100.0, 6.0), []
        for number in range(1, 9):
            moment = 100.0 + number * 8.2
            absence.goes_on(moment - 4.2)
            absence.has_answered(moment)
            spared.append(absence.spares(moment))
        assert spared == [True, False] * 4

    @pytest.mark.parametrize("works", [2.0, 5.9, 6.1, 13.0])
    @pytest.mark.parametrize("is_away", [4.2, 7.0, 13.0, 60.0])
    def test_nor_does_one_that_was_away_time_and_again_and_had_to_register_each_time(
        self, works: float, is_away: float
    ) -> None:
        now, absence, judged = 100.0, None, 0
        for _ in range(10):
            now += is_away
            absence = Absence(now, 6.0, absence)
            goes_until = now + works
            while now < goes_until:
                absence.has_answered(now)
                judged += not absence.spares(now)
                absence.goes_on(now)
                now += 1.0
        assert judged >= 4

    def test_an_outage_long_after_another_one_spares_again(self) -> None:
        absence = Absence(100.0, 6.0, Absence(90.0, 6.0))
        assert absence.spares(105.9)
        absence.has_answered(104.0)
        absence.has_answered(107.0)
        assert not absence.spares(107.0)
        assert Absence(120.0, 6.0, absence).spares(125.9)
