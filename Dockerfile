# One image for every part of the service: docker build --target loopwright .
# The stage `gpu` adds what workers for GPUs need: docker build --target gpu .
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS dashboard
WORKDIR /source/dashboard
COPY dashboard/package.json dashboard/package-lock.json ./
RUN npm ci
COPY dashboard/ ./
RUN npm run build

FROM ${PYTHON_IMAGE} AS wheel
WORKDIR /source
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY constraints.txt ./
RUN pip install --constraint constraints.txt setuptools
COPY LICENSE README.md loopwright_start.py pyproject.toml ./
COPY compiler/ compiler/
COPY loopwright/ loopwright/
COPY migrations/ migrations/
COPY service/ service/
COPY tuner/ tuner/
COPY workers/ workers/
COPY --from=dashboard /source/service/dashboard service/dashboard/
# The project's own build backend builds the dashboard too; the stage above did so.
RUN python -c "from setuptools import build_meta; build_meta.build_wheel('/wheels')"

FROM ${PYTHON_IMAGE} AS packages
WORKDIR /source
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PATH=/opt/loopwright/bin:$PATH
RUN python -m venv /opt/loopwright
COPY constraints.txt ./
COPY --from=wheel /wheels /wheels
RUN pip install --constraint constraints.txt \
    "loopwright[postgresql,onnx] @ file://$(echo /wheels/loopwright-*.whl)"

FROM packages AS gpu-packages
RUN pip install --constraint constraints.txt \
    "loopwright[gpu] @ file://$(echo /wheels/loopwright-*.whl)"

FROM ${PYTHON_IMAGE} AS base
# Candidates that are killed leave orphans: tini, as process 1, removes them.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tini \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 loopwright \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp loopwright \
    && install --directory --owner=loopwright --group=loopwright --mode=0700 /cluster
ENV PATH=/opt/loopwright/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    LOOPWRIGHT_CACHE=/tmp/loopwright \
    LOOPWRIGHT_CERTIFICATES=/cluster \
    LOOPWRIGHT_LOGS=json
USER 10001:10001
WORKDIR /tmp
EXPOSE 8080
ENTRYPOINT ["tini", "--", "loopwright"]
CMD ["api", "--host", "0.0.0.0", "--port", "8080"]
# For the API; docker-compose.yml has the checks of the other parts.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/readyz', timeout=4)"]

FROM base AS gpu
COPY --from=gpu-packages /opt/loopwright /opt/loopwright
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility

FROM base AS loopwright
COPY --from=packages /opt/loopwright /opt/loopwright
