"""Damaged variants of each file format that holds recorded motion, for a fuzz of its readers.

``python test/damaged_files.py [COUNT] [SEED]`` reads COUNT variants of each format (default: 300)
and prints every error that is not one line of this package.
"""

import json
import random
import re
import shutil
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np

from arm_dynamics import Command, Simulation, load_arm
from arm_dynamics.core import ArmDynamicsError
from arm_dynamics.identification import compare, read_poses
from arm_dynamics.identification.gravity.recorded_poses import is_pose_table
from arm_dynamics.recording import Recorder, Recording, load_motion
from arm_dynamics.recording.bag import STATES, BagWriter, Message
from arm_dynamics.recording.motions.motion_checks import check_units
from arm_dynamics.recording.replay import replay

ARM = load_arm("two_link")
TIME = 0.01 * np.arange(120)
Q = np.stack([1.0 + np.sin(3 * TIME), 0.5 * np.cos(5 * TIME)], axis=1)
TAU = np.stack([20 * np.cos(3 * TIME), 5 * np.sin(5 * TIME)], axis=1)
NAMES = ("time", "position.J1", "position.J2", "effort.J1", "effort.J2")
TOKENS = (
    "9" * 400, "9" * 5000, "1e150", "-1e308", "1e400", "nan", "inf", "-1", "0", "", "null", "1,5",
    '"' + "7" * 200_000 + '"', "[" * 5000 + "]" * 5000, "{" * 3000, '"', "0x7f", "1_0", "٣", "\x00",
    "2024-05-01T00:00:00", "9999-12-31T23:59:59", "header:", "#", "\u2028", "true", "[]", "{}",
)  # fmt: skip
CHANGES = ("bit", "end", "block", "zeros", "deletion", "repetition", *["value"] * 4)


def csv(folder):
    rows = np.column_stack([TIME, Q, TAU]).tolist()
    lines = [",".join(NAMES), *(",".join(map(repr, row)) for row in rows)]
    (folder / "a.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return folder / "a.csv"


def parquet(folder):
    arrow, file = import_module("pyarrow"), import_module("pyarrow.parquet")
    table = arrow.table(dict(zip(NAMES, np.column_stack([TIME, Q, TAU]).T, strict=True)))
    file.write_table(table, folder / "a.parquet")
    return folder / "a.parquet"


def dataset(folder):
    arrow, file = import_module("pyarrow"), import_module("pyarrow.parquet")
    feature = {"dtype": "float32", "shape": [2], "names": ["J1.pos", "J2.pos"]}
    features = dict.fromkeys(("observation.state", "observation.effort", "action"), feature)
    features["observation.effort"] = {**feature, "names": ["J1", "J2"]}
    info = {"codebase_version": "v3.0", "robot_type": "arm", "total_episodes": 1, "fps": 100}
    (folder / "meta").mkdir()
    (folder / "meta" / "info.json").write_text(json.dumps({**info, "features": features}))
    (folder / "data" / "chunk-000").mkdir(parents=True)
    columns = {"timestamp": TIME, "episode_index": np.zeros(len(TIME), int)}
    columns |= dict(zip(features, (Q.tolist(), TAU.tolist(), Q.tolist()), strict=True))
    file.write_table(arrow.table(columns), folder / "data" / "chunk-000" / "file-000.parquet")
    return folder


def bag(folder):
    writer = BagWriter(folder / "bag")
    for t, q, tau in zip(TIME, Q, TAU, strict=True):
        now = 1_700_000_000_000_000_000 + round(t * 1e9)
        writer.add(Message(STATES, now, ARM.joint_names, {"position": q, "effort": tau}))
    writer.close()
    return folder / "bag"


def sqlite(folder):
    rosbag2, typesys = import_module("rosbags.rosbag2"), import_module("rosbags.typesys")
    store = typesys.get_typestore(typesys.Stores.ROS2_HUMBLE)
    kinds, name = store.types, "sensor_msgs/msg/JointState"
    plugin = rosbag2.StoragePlugin.SQLITE3
    with rosbag2.Writer(folder / "bag", version=8, storage_plugin=plugin) as writer:
        connection = writer.add_connection(STATES, name, typestore=store)
        for t, q, tau in zip(TIME, Q, TAU, strict=True):
            stamp = kinds["builtin_interfaces/msg/Time"](*divmod(7 * 10**9 + round(t * 1e9), 10**9))
            header = kinds["std_msgs/msg/Header"](stamp, "")
            message = kinds[name](header, list(ARM.joint_names), q, np.empty(0), tau)
            late = 7 * 10**9 + round(t * 1e9)
            writer.write(connection, late, store.serialize_cdr(message, name))
    return folder / "bag"


def recording(folder):
    sim = Simulation(ARM)
    with Recorder(sim, folder / "run"):
        for k in range(400):
            sim.submit(Command.checked("effort", np.full(2, np.sin(0.05 * k)), 2, sim.state.time))
            sim.advance()
    return folder / "run"


def poses(folder):
    names = [f"{part}.{j}" for part in ("position", "effort", "approached") for j in ("J1", "J2")]
    rows = np.column_stack([Q, TAU, np.sign(TAU)])[::10].tolist()
    lines = [",".join(names), *(",".join(map(repr, row)) for row in rows)]
    (folder / "poses.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return folder / "poses.csv"


FORMATS = (csv, parquet, dataset, bag, sqlite, recording, poses)


def read(path):
    """Read a file as its commands do; return whether it was accepted."""
    if path.name == "poses.csv":
        is_pose_table(path)
        return bool(read_poses(ARM, path))
    if path.name == "run":
        Recording.load(path).columns()
        replay(path)
    motion = load_motion(ARM, path, degrees=(path / "meta").exists())
    check_units(ARM, motion)
    if motion.effort is not None:
        compare(ARM, motion)
    return True


def damaged(content, rng):
    """Return ``content`` after one to three changes, as a disk, an editor or a program may do."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        size = len(content)
        if not size:
            break
        first = rng.randrange(size)
        last = min(size, first + rng.choice((1, 1, 8, 30, 3000)))
        change = rng.choice(
            ("bit", "end", "block", "zeros", "deletion", "repetition", *["value"] * 4)
        )
        if change == "bit":
            new = bytes([content[first] ^ (1 << rng.randrange(8))])
            content = content[:first] + new + content[first + 1 :]
        elif change == "end":
            content = content[: rng.choice((first, first, 0, size - 1))]
        elif change == "block":
            content = content[:first] + rng.randbytes(last - first) + content[first:]
        elif change == "zeros":
            content = content[:first] + bytes(last - first) + content[last:]
        elif change == "deletion":
            content = content[:first] + content[last:]
        elif change == "repetition":
            content = content[:last] + content[first:]
        else:
            words = [x.span() for x in re.finditer(rb'-?[\w.+"]+', content[:200_000])]
            start, end = rng.choice(words or [(0, 0)])
            content = content[:start] + rng.choice(TOKENS).encode() + content[end:]
    return content


def variants(make, count, seed, folder):
    """Yield paths of damaged variants of a format, each in the same place."""
    rng = random.Random(f"{make.__name__} {seed}")
    whole = folder / "whole"
    whole.mkdir()
    path = make(whole).relative_to(whole)
    files = sorted(file.relative_to(whole) for file in whole.rglob("*") if file.is_file())
    for k in range(count):
        shutil.rmtree(folder / "damaged", ignore_errors=True)
        shutil.copytree(whole, folder / "damaged")
        file = folder / "damaged" / files[k % len(files)]
        content = damaged(file.read_bytes(), rng)
        if rng.random() < 0.02:
            file.unlink()
        else:
            file.write_bytes(content)
        yield folder / "damaged" / path


def raw_error(path):
    """Return "accepted", "rejected", or the traceback of an error that is not one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return "accepted" if read(path) else "empty"
        except ArmDynamicsError as error:
            is_line = "\n" not in str(error) and len(str(error)) < 1500
            return "rejected" if is_line else f"error of {len(str(error))} characters: {error}"
        except Exception:
            return traceback.format_exc()


def main(count=300, seed=0):
    """Print the results by format, and each kind of raw error once."""
    seen = set()
    for make in FORMATS:
        results = Counter()
        with tempfile.TemporaryDirectory() as folder:
            for k, path in enumerate(variants(make, count, seed, Path(folder))):
                result = raw_error(path)
                known = result if result in ("accepted", "rejected", "empty") else "RAW"
                results[known] += 1
                if known == "RAW":
                    key = (make.__name__, *result.strip().splitlines()[-3:-1])
                    if key not in seen:
                        seen.add(key)
                        print(f"--- {make.__name__} {k}\n{result[-1800:]}", flush=True)
        print(make.__name__, dict(results), flush=True)


if __name__ == "__main__":
    main(*(int(x) for x in sys.argv[1:]))
