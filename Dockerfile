# ik_node with ROS 2 from PyPI, in the tested versions, without ROS packages by apt:
# docker build -t ik_node . && docker run --rm -it ik_node python examples/01_solve.py
FROM python:3.11-slim-bookworm

RUN useradd --create-home arm
USER arm
WORKDIR /home/arm/ik_node
COPY --chown=arm . .
RUN python tools/set_up.py viewer collision pictures scipy ros-wheels servos many
ENV PATH=/home/arm/ik_node/.venv/bin:$PATH
# On Linux, docker run --network host ik_node ik_demo has its page at the URL that it prints.
CMD ["ik_demo"]
