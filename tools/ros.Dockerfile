# ROS 2 as apt installs it, with what PyPI has no wheels of: launch, tf2, MoveIt's messages, RViz's markers.
# --build-arg DISTRIBUTION=kilted: another than Jazzy; NUMPY=numpy where its messages are compiled for NumPy 2.
# docker build -t ik_node_ros -f tools/ros.Dockerfile . && docker run --rm ik_node_ros
ARG DISTRIBUTION=jazzy
FROM ros:${DISTRIBUTION}-ros-base

RUN apt-get update && apt-get install -y --no-install-recommends \
    python3-venv ros-$ROS_DISTRO-control-msgs ros-$ROS_DISTRO-interactive-markers ros-$ROS_DISTRO-joint-state-publisher \
    ros-$ROS_DISTRO-moveit-msgs ros-$ROS_DISTRO-robot-state-publisher ros-$ROS_DISTRO-tf2-ros-py ros-$ROS_DISTRO-xacro \
    && rm -rf /var/lib/apt/lists/*
ARG NUMPY='numpy<2'
RUN python3 -m venv --system-site-packages /ik_packages && /ik_packages/bin/pip install --no-cache-dir \
    "$NUMPY" 'scipy>=1.9' 'transforms3d>=0.4.1' coal mcap ruckig viser websockets yourdfpy mujoco pyserial \
    pytest pytest-xdist hypothesis catkin-pkg

COPY . /ik_ws/src/ik_node
WORKDIR /ik_ws/src/ik_node
SHELL ["/bin/bash", "-c"]
RUN source /opt/ros/$ROS_DISTRO/setup.bash && cd /ik_ws && colcon build --packages-select ik_node && \
    cd src/ik_node && /ik_packages/bin/python -m ik_node.kernels.build
# The tests of everything that uses a ROS package: what is a stand-in elsewhere is the real one here.
CMD source /opt/ros/$ROS_DISTRO/setup.bash && source /ik_ws/install/setup.bash && \
    exec /ik_packages/bin/python -m pytest -rs test/launch test/ros test/viewer test/recording \
    -m 'not browser and not nightly'
