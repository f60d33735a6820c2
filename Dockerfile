# BERT for JAX on NVIDIA GPUs; docs/install.md says how to build and run it. CUDA's libraries are Python packages, so a
# plain image of Python is enough; the driver comes from the host.
FROM python:3.13-slim

ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility PYTHONUNBUFFERED=1
WORKDIR /opt/bert
COPY requirements-cuda12.lock ./
RUN pip install --no-cache-dir --require-hashes --requirement requirements-cuda12.lock
COPY pyproject.toml setup.py README.md LICENSE ./
COPY bert bert
COPY configs configs
COPY launch launch
COPY tasks tasks
# Built with the lock's setuptools. Compiled here, for the user may not write here.
RUN pip install --no-cache-dir --no-deps --no-build-isolation --editable . \
    && python -m compileall -q bert configs launch tasks \
    && useradd --create-home --uid 1000 bert

USER 1000
WORKDIR /work
ENTRYPOINT ["bert"]
