"""Replay of a recorded motion on a page: time line, play, pause, speed."""

from types import SimpleNamespace

import numpy as np
import pytest
from browser import Panel
from conftest import five_dof
from test_viewer import eventually

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.viewer.player import Player
from arm_dynamics.viewer.plot import RATE


def motion(count=401):
    time = np.linspace(10.0, 14.0, count)
    q = np.outer(time - 10, [0.1, 0.2, -0.1, 0.05, 0.0])
    nothing = np.full_like(q, np.nan)
    return SimpleNamespace(
        arm=five_dof(), joint_names=five_dof().joint_names, time=time, q=q, v=nothing.copy(),
        tau=nothing, references={"position": q + 0.1},
    )  # fmt: skip


@pytest.fixture
def player():
    with Player(motion(), port=0) as player:
        yield player


def test_time_passes_at_the_chosen_speed_and_ends(player):
    player.advance(0.5)
    assert player.time == pytest.approx(10.5)
    np.testing.assert_allclose(player.page._shown.sample.q[:2], (0.05, 0.1), atol=1e-9)
    np.testing.assert_allclose(player.page._shown.sample.error, 0.1)
    assert player.page._shown.sample.v is None
    player._set_speed(2.0)
    player.advance(1.0)
    assert player.time == pytest.approx(12.5)
    player.advance(100.0)
    assert player.time == 14.0
    assert not player.playing


def test_a_browser_scrubs_pauses_and_restarts(player):
    with Panel(player.page.url) as panel:
        panel.push("Pause")
        panel.wait_for(lambda: "Play" in panel.offered, "no pause")
        player.advance(1.0)
        assert player.time == 10.0
        panel.set("Time [s]", 13.0)
        assert eventually(lambda: player.time == 13.0)
        times = [sample.time for sample in player.page._history]
        assert times[0] == 10.0  # the plots show the motion before
        assert times[-1] == pytest.approx(13.0, abs=1 / RATE)
        panel.set("Time [s]", 11.0)
        assert eventually(lambda: player.time == 11.0)
        newest = [sample.time for sample in player.page._history][-1]
        assert newest == pytest.approx(11.0, abs=1 / RATE)
        panel.push("Play")
        assert eventually(lambda: player.playing)
        panel.push("To the start")
        assert eventually(lambda: player.time == 10.0)
        assert "this page replays a recording" in panel.text


def test_the_timeline_follows_and_play_at_the_end_starts_again(player):
    player.advance(100.0)
    assert player._slider.value == 14.0
    with Panel(player.page.url) as panel:
        panel.push("Play")
        assert eventually(lambda: player.playing and player.time == 10.0)


def test_the_replay_can_move_no_arm(player):
    with pytest.raises(InvalidValue, match="view-only"):
        player.page.add_controls()


def test_recordings_without_an_arm_or_a_complete_state_are_rejected():
    without = motion()
    without.arm = None
    with pytest.raises(InvalidValue, match="arm = none"):
        Player(without, port=0)
    incomplete = motion()
    incomplete.q[:, 0] = np.nan
    with pytest.raises(InvalidValue, match="complete states = 0"):
        Player(incomplete, port=0)
