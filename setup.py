"""Package description, read by pip and by colcon (ament_python)."""

from pathlib import Path

from setuptools import find_packages, setup

NAME = "arm_dynamics"
ROOT = Path(__file__).resolve().parent  # colcon may run a link to this file, from another folder
SHARE = Path("share") / NAME
MOVEIT, INDEX = "config/moveit", "share/ament_index/resource_index/packages"
VIEWER = ["viser>=1.1", "yourdfpy>=0.0.56"]
UNIT = ["pytest>=8", "pytest-xdist>=3.5", "hypothesis>=6.100"]
# ROS 2 as wheels exists for this platform alone; elsewhere the nodes need an installed ROS 2.
WHEELS = 'sys_platform == "linux" and platform_machine == "x86_64"'


def files(*folders: str) -> list[Path]:
    """Every file below ``folders``, relative to this one."""
    found = [p for folder in folders for p in sorted((ROOT / folder).rglob("*")) if p.is_file()]
    return [p.relative_to(ROOT) for p in found if "__pycache__" not in p.parts]


def moveit_packages() -> list[tuple[str, list[str]]]:
    """The MoveIt packages of bundled arms, each installed as a separate ROS package."""
    packages = [p for p in files(MOVEIT) if "_moveit_config/" in str(p)]
    return [
        *((str(Path("share") / p.relative_to(MOVEIT).parent), [str(p)]) for p in packages),
        *((INDEX, [f"resource/{n}"]) for n in sorted({p.parts[2] for p in packages})),
    ]


def wheels(rclpy: str, interfaces: str) -> list[str]:
    """The requirements of one ROS 2 distribution installed from wheels."""
    return [
        f"ros-rclpy[fastrtps]=={rclpy}; {WHEELS}",
        f"ros-common-interfaces=={interfaces}; {WHEELS}",
    ]


setup(
    name=NAME,
    version="0.1.0",
    description="Dynamics, simulation and control of robot arms in Python and ROS 2",
    long_description=(ROOT / "README.md").read_text("utf-8"),
    long_description_content_type="text/markdown",
    keywords=[
        "robotics",
        "robot arm",
        "manipulator",
        "dynamics",
        "simulation",
        "control",
        "motor",
        "URDF",
        "ROS 2",
        "Pinocchio",
    ],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Education",
        "Intended Audience :: Science/Research",
        "License :: OSI Approved :: Apache Software License",
        "Operating System :: MacOS",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3.14",
        "Topic :: Scientific/Engineering",
        "Topic :: Scientific/Engineering :: Physics",
        "Topic :: System :: Hardware :: Hardware Drivers",
        "Typing :: Typed",
    ],
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=find_packages(str(ROOT), include=[NAME, f"{NAME}.*"]),
    package_data={NAME: ["py.typed"]},
    data_files=[
        (INDEX, [f"resource/{NAME}"]),
        (str(SHARE), ["package.xml"]),
        *(
            (str(SHARE / p.parent), [str(p)])
            for p in files("launch", "urdf", "config")
            if "_moveit_config/" not in str(p)
        ),
        *moveit_packages(),
        (f"lib/{NAME}", [str(p) for p in files("executables")]),
    ],
    zip_safe=False,
    # An installed ROS 2 has Pinocchio as a library that Python's metadata does not list:
    # colcon installs without looking at these names, and package.xml declares them for rosdep.
    install_requires=[
        "numpy>=1.26",
        "scipy>=1.11",
        "pin>=3",
        "pyyaml>=6",
        "numba>=0.59",
        "threadpoolctl>=3",
        "rich>=13",
        *VIEWER,  # 175 MB of 1.0 GB: an installation without extras shows a moving arm
    ],
    extras_require={
        "ros": wheels("7.1.6", "5.3.6"),  # Jazzy
        "kilted": wheels("9.1.2", "5.5.1"),  # instead of "ros"
        "viewer": VIEWER,  # for an installation by colcon, which reads no requirements
        "plot": ["matplotlib>=3.8"],
        "record": ["rosbags>=0.11"],
        "table": ["pandas>=2", "pyarrow>=14"],  # recordings as DataFrame and Parquet
        "xacro": ["xacro>=2.1"],  # xacro files as arms
        "rollout": ["casadi>=3.6"],  # makes kernels; made ones run without it
        "gymnasium": ["gymnasium>=1.1", "casadi>=3.6"],  # environments of policies
        "trajectories": ["toppra>=0.6"],  # time scaling; wheels for Linux x86-64 only
        # Motors on serial ports and CAN; python-can's udp_multicast needs msgpack.
        "hardware": ["pyserial>=3.5", "python-can>=4.4", "msgpack>=1.0"],
        "tune": ["cma>=3.3", "casadi>=3.6", "matplotlib>=3.8"],
        "bench": [
            "mujoco[sysid]>=3.2",
            "gymnasium>=1.1",
            "casadi>=3.6",
            "example-robot-data==6.0.0",
            "dynamixel-sdk>=4.0",
            "roboticstoolbox-python>=1.4",  # inverse kinematics in C++
            "matplotlib>=3.8",
        ],
        "docs": ["sphinx>=8.1", "myst-parser>=4", "numpydoc>=1.8", "furo>=2024.8"],
        "unit": UNIT,
        "test": [
            *UNIT,
            "ruff>=0.6",
            "mypy>=1.11",
            "import-linter>=2.17",
            "types-PyYAML",
            "pyserial>=3.5",
            "python-can>=4.4",
            "msgpack>=1.0",
            "dynamixel-sdk==4.1.0",  # the vendor's codec, compared with ours
            "casadi>=3.6",
            "cma>=3.3",
            "toppra>=0.6",
            "pandas>=2",
            "pyarrow>=14",
            "xacro>=2.1",
            "mujoco>=3.2",  # reads the MJCF that we write, and computes the same dynamics
            "gymnasium>=1.1",
            "distributed>=2024.1",  # rollouts spread over a local dask cluster
            "example-robot-data==6.0.0",  # URDFs and meshes of other vendors' arms, any Python
            "colcon-common-extensions>=0.3",
            "setuptools>=65,<80",  # colcon installs through setup.py; 3.12 brings none
        ],
    },
    # The only command on PATH; the nodes' executables are data files for `ros2 run` and launch.
    entry_points={"console_scripts": ["arm-dynamics = arm_dynamics.cli.start:main"]},
)
