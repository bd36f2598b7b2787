"""Gymnasium environments: trajectories of the plant, rewards, episodes, seeds, bad input."""

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("casadi")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402
from gymnasium.wrappers.vector import RecordEpisodeStatistics  # noqa: E402

from arm_dynamics import State, load_arm  # noqa: E402
from arm_dynamics.batch import Reach, SwingUp, rollout  # noqa: E402
from arm_dynamics.batch.environments import EPISODES, ArmVectorEnvironment  # noqa: E402
from arm_dynamics.batch.kernels.cost import CostGeometry  # noqa: E402
from arm_dynamics.batch.kernels.state_function import StateFunction  # noqa: E402
from arm_dynamics.batch.rollouts.task_runner import tool_positions  # noqa: E402
from arm_dynamics.core.errors import ArmDynamicsError, CommandRejected, InvalidValue  # noqa: E402
from arm_dynamics.dynamics.rigid_body import potential_energy  # noqa: E402
from arm_dynamics.model.load import find_urdf  # noqa: E402

IDS = [f"arm_dynamics/{name}-v0" for name in EPISODES]
SIZE = 40
"""More than one block; the last one is not full."""


def make(task="Reach", size=SIZE, task_class=None, **options):
    options = {"arm": "two_link", "dtype": "float64", "task": task_class or task, **options}
    return gymnasium.make_vec(f"arm_dynamics/{task}-v0", num_envs=size, **options)


def random_actions(periods, size=SIZE, n=2):
    return np.random.default_rng(0).uniform(-1.2, 1.2, (periods, size, n))


def run(env, actions, seed=0):
    first, _ = env.reset(seed=seed)
    answers = [env.step(a)[:4] for a in actions]
    return first, [np.array(x) for x in zip(*answers, strict=True)]


def test_trajectories_are_those_of_the_plant():
    env, actions = make(time_steps=2), random_actions(10)
    first, (observations, *_) = run(env, actions)
    commands = np.clip(actions, -1, 1).transpose(1, 0, 2) * env.unwrapped.command_limit
    expected = rollout(
        load_arm("two_link"), first[:, :4], commands, 0.001, interface="effort",
        steps_per_command=2, record_every=2, backend="plant",
    )  # fmt: skip
    np.testing.assert_allclose(observations[..., :2], expected.q.swapaxes(0, 1), atol=1e-12)
    np.testing.assert_allclose(observations[..., 2:4], expected.v.swapaxes(0, 1), atol=1e-12)


def test_single_precision_agrees():
    actions = random_actions(50)
    wide, narrow = (run(make(dtype=dtype), actions)[1] for dtype in ("float64", "float32"))
    assert narrow[0].dtype == np.float32
    np.testing.assert_allclose(narrow[0], wide[0], atol=1e-3)
    np.testing.assert_allclose(narrow[1], wide[1], atol=1e-3)


def test_reward_of_reach_in_closed_form():
    actions = random_actions(5)
    _, (observations, rewards, terminated, truncated) = run(make(), actions)
    q, tool, goal = observations[..., :2], observations[..., 4:7], observations[..., 7:]
    angles = np.cumsum(q, axis=-1)
    x, z = np.cos(angles).sum(axis=-1), np.sin(angles).sum(axis=-1)
    np.testing.assert_allclose(tool[..., [0, 2]], np.stack([x, z], axis=-1), atol=1e-12)
    distance = np.linalg.norm(goal - tool, axis=-1)
    cost = 0.01 * (np.clip(actions, -1, 1) ** 2).mean(axis=-1)
    np.testing.assert_allclose(rewards, -distance - cost, atol=1e-12)
    assert (np.linalg.norm(goal[..., [0, 2]], axis=-1) <= 2.0).all()
    assert not terminated.any()
    assert not truncated.any()


def test_swing_up_has_half_of_the_gravity_torque_and_an_energy_controller_reaches_the_top():
    env = make("SwingUp")
    g = 9.81  # uniform rods of 1 m and 1 kg: m g (1/2 + 3/2), m g / 2
    np.testing.assert_allclose(env.unwrapped.command_limit, [g, g / 4], rtol=1e-6)
    task = env.unwrapped.task
    np.testing.assert_allclose([task.lowest_energy, task.highest_energy], [-2 * g, 2 * g])
    observation, _ = env.reset(seed=1)
    np.testing.assert_allclose(observation[:, :2] ** 2 + observation[:, 2:4] ** 2, 1.0, atol=1e-12)
    best = np.full(SIZE, -np.inf)
    for _ in range(3000):
        v = observation[:, 4:]
        actions = np.where(v < 0, -1.0, 1.0)  # the largest power
        observation, rewards, *_ = env.step(actions)
        v = observation[:, 4:]
        best = np.maximum(best, rewards + 0.001 * ((v * v).sum(axis=1) + 2))
    assert (best > 0.95).all()
    assert (best <= 1.0 + 1e-9).all()


@pytest.mark.parametrize("name", ["so101", "five_dof"])
def test_tool_and_energy_are_those_of_the_model(name):
    arm = load_arm(name).with_payload(0.2, (0.0, 0.01, 0.02))

    def outputs(stage, action, goal):
        return {"tool": stage.tool_position, "energy": [stage.potential_energy]}

    function = StateFunction(arm, 0, outputs, "float64", 8)
    x = function.block()
    rows = x.reshape(function.layout.rows, 8)
    q = np.random.default_rng(0).uniform(-1, 1, (8, arm.nv))
    rows[function.layout.block("q")] = q.T
    function._module.evaluate(x)
    tool, energy = (rows[function.layout.block(name)].T for name in ("tool", "energy"))
    np.testing.assert_allclose(tool, tool_positions(arm, q), atol=1e-12)
    np.testing.assert_allclose(energy[:, 0], [potential_energy(arm, one) for one in q], atol=1e-12)


def test_rewards_of_a_task_are_the_same_for_numbers():
    arm = load_arm("two_link")
    env, actions = make("SwingUp", 1), random_actions(1, 1)
    _, (observations, rewards, *_) = run(env, actions)
    sine, cosine, v = np.split(observations[0, 0], 3)
    q = np.arctan2(sine, cosine)
    stage = CostGeometry(arm).stage(State.of(q, v), np.zeros(2))
    found = SwingUp(arm).reward(stage, np.clip(actions[0, 0], -1, 1), np.empty(0))
    np.testing.assert_allclose(found, rewards[0, 0], atol=1e-12)
    assert Reach(arm).draws == 4


def test_the_step_after_the_last_one_starts_an_episode():
    env = make(max_episode_steps=3)
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    first, (observations, rewards, _, truncated) = run(env, random_actions(8))
    np.testing.assert_array_equal(truncated.all(axis=1), [0, 0, 1, 0, 0, 0, 1, 0])
    np.testing.assert_array_equal(truncated.any(axis=1), truncated.all(axis=1))
    assert (rewards[3] == 0).all()  # the action is ignored
    assert (observations[3][:, 2:4] == 0).all()
    assert (observations[3][:, 7:] != first[:, 7:]).any()  # another goal
    assert (observations[4][:, 2:4] != 0).all()


def test_statistics_of_episodes_by_gymnasium():
    env = RecordEpisodeStatistics(make(max_episode_steps=3))
    env.reset(seed=0)
    rewards = [env.step(a)[1] for a in random_actions(2)]
    _, last, _, _, info = env.step(np.zeros((SIZE, 2)))
    np.testing.assert_allclose(info["episode"]["r"], np.sum([*rewards, last], axis=0))
    np.testing.assert_array_equal(info["episode"]["l"], 3)


@pytest.mark.parametrize("task", EPISODES)
def test_seeds_give_the_same_bits_in_any_number_of_environments(task):
    actions = random_actions(6)
    _, expected = run(make(task, max_episode_steps=3), actions, seed=5)
    env = make(task, max_episode_steps=3)
    for _ in range(2):  # after other episodes too
        for x, y in zip(run(env, actions, seed=5)[1], expected, strict=True):
            np.testing.assert_array_equal(x, y)
    _, some = run(make(task, 2, max_episode_steps=3), actions[:, 37:39], seed=[5 + 37, 5 + 38])
    for x, y in zip(some, expected, strict=True):
        np.testing.assert_array_equal(x, y[:, 37:39])
    single = gymnasium.make(IDS[list(EPISODES).index(task)], arm="two_link", dtype="float64")
    single.reset(seed=5 + 37)
    for k in range(3):
        np.testing.assert_array_equal(single.step(actions[k, 37])[0], expected[0][k, 37])
    assert (run(env, actions, seed=6)[1][0] != expected[0]).any()


@pytest.mark.filterwarnings("ignore:.*A Box observation space m")
@pytest.mark.parametrize("name", IDS)
def test_gymnasium_accepts_the_environment(name):
    check_env(gymnasium.make(name, arm="two_link", dtype="float64").unwrapped)
    env = gymnasium.make_vec(name, num_envs=3, arm="two_link", dtype="float64")
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    assert env.observation_space.shape == (3, *env.single_observation_space.shape)
    assert env.action_space.shape == (3, 2)
    assert env.spec.max_episode_steps == EPISODES[name.split("/")[1][:-3]][1]
    observation, rewards, terminated, truncated, info = env.step(env.action_space.sample())
    assert observation in env.observation_space
    assert [x.shape for x in (rewards, terminated, truncated)] == [(3,)] * 3
    assert info == {}


class Gentle(Reach):
    def reward(self, stage, action, goal):
        return super().reward(stage, action, goal) - 0.01 * (stage.v @ stage.v)


def test_own_tasks():
    actions = random_actions(3)
    _, (_, expected, *_) = run(make(), actions)
    _, (observations, rewards, *_) = run(make(task_class=Gentle), actions)
    v = observations[..., 2:4]
    np.testing.assert_allclose(rewards, expected - 0.01 * (v**2).sum(axis=-1), atol=1e-12)


class Branching(Reach):
    def reward(self, stage, action, goal):
        return 1.0 if stage.q[0] > 0 else 0.0


def test_the_error_of_a_task_with_a_branch_names_its_line():
    with pytest.raises(InvalidValue, match=r"'reward', line \d+: TypeError.*use where"):
        ArmVectorEnvironment(Branching, "two_link")


def test_files_are_arms():
    env = make(arm=find_urdf("two_link"), size=1)
    assert env.reset(seed=0)[0].shape == (1, 10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arm": "two_lonk"}, "two_link"),
        ({"arm": "two_link", "dtype": "float16"}, "float64"),
        ({"arm": "two_link", "interface": "voltage"}, "interface of joint 'J1'"),
        ({"arm": "two_link", "num_envs": 0}, "num_envs = 0"),
        ({"arm": "two_link", "period": 0.0}, "period"),
        ({"arm": "two_link", "time_steps": 0}, "time_steps"),
        ({"arm": "two_link", "task": "Reech"}, "Reach"),
        ({"arm": "two_link", "task": 5}, "task = 5"),
        ({"arm": load_arm("two_link").with_gravity([0, 0, 0]), "task": "SwingUp"}, "potential"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ArmDynamicsError, match=message):
        ArmVectorEnvironment(**{"task": "Reach", **options})


def test_bad_actions_move_nothing():
    env, other, actions = make(), make(), random_actions(2)
    with pytest.raises(InvalidValue, match="call reset"):
        env.step(actions[0])
    run(env, actions[:1])
    run(other, actions[:1])
    bad = actions[1].copy()
    bad[33, 1] = np.nan
    with pytest.raises(CommandRejected, match="environment 33, joint 'J2': action = nan"):
        env.step(bad)
    with pytest.raises(CommandRejected, match="shape of the actions"):
        env.step(bad[:3])
    for x, y in zip(env.step(actions[1])[:4], other.step(actions[1])[:4], strict=True):
        np.testing.assert_array_equal(x, y)
    with pytest.raises(InvalidValue, match="seeds = 2; expected 40"):
        env.reset(seed=[1, 2])
    with pytest.raises(InvalidValue, match="options"):
        env.reset(options={"q": 0})


def test_divergence_is_an_error_and_reset_starts_again():
    env = make(period=5.0)
    first, _ = env.reset(seed=0)
    with pytest.raises(InvalidValue, match=r"simulation diverged: environment \d+, joint 'J\d'"):
        run(env, np.ones((300, SIZE, 2)))
    with pytest.raises(InvalidValue, match="call reset"):
        env.step(np.ones((SIZE, 2)))
    np.testing.assert_array_equal(env.reset(seed=0)[0], first)
    env.step(np.zeros((SIZE, 2)))
