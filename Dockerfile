# ROS 2 image with the package built by colcon; it starts the simulator and its page.
#
#   docker build -t arm_dynamics .                                       # Jazzy
#   docker build -t arm_dynamics --build-arg ROS_DISTRO=kilted .
#   docker run --rm --network host arm_dynamics                          # http://127.0.0.1:8080
#   docker run --rm arm_dynamics ros2 run arm_dynamics arm-dynamics sim --headless --duration 3
ARG ROS_DISTRO=jazzy
FROM ros:${ROS_DISTRO}-ros-base

SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /workspace
COPY package.xml src/arm_dynamics/
# No displays in a container: RViz and the slider window are omitted.
RUN apt-get update \
    && rosdep update --rosdistro "$ROS_DISTRO" \
    && rosdep install --from-paths src --ignore-src -y -t buildtool -t build -t exec \
        --skip-keys "rviz2 joint_state_publisher_gui" \
    && apt-get install -y --no-install-recommends python3-pip \
    && rm -rf /var/lib/apt/lists/*
# The page. Pinocchio and numpy are those of ROS: pip's must not replace them.
RUN pip install --no-cache-dir --break-system-packages "viser>=1.1" "yourdfpy>=0.0.56" \
        "numpy==$(python3 -c 'import numpy; print(numpy.__version__)')"

COPY . src/arm_dynamics
RUN source "/opt/ros/$ROS_DISTRO/setup.bash" && colcon build && rm -rf build log
# The entry point of the image sources ROS; this one adds the workspace.
RUN printf '#!/bin/bash\nset -e\nsource /workspace/install/setup.bash\nexec "$@"\n' > /entrypoint.sh \
    && chmod +x /entrypoint.sh
ENTRYPOINT ["/entrypoint.sh"]
CMD ["ros2", "launch", "arm_dynamics", "simulation.launch.py", "viewer:=true"]
