# The image of Longthread: its server, its gateway and its command line. `make image` builds it.
#
# Any image of Debian with Python 3.11 or newer and venv can be the base, in a version that you choose:
#     docker build --build-arg BASE=python:3.13-slim -t longthread .
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
# What is installed besides the core, and the commit that `longthread --version` names.
ARG EXTRAS=app,demo,mcp,mysql,team
ARG COMMIT=
WORKDIR /build
RUN python3 -m venv tools
COPY requirements requirements
RUN tools/bin/python -m pip install --quiet --no-cache-dir --no-deps -r requirements/pip.txt \
 && tools/bin/python -m pip install --quiet --no-cache-dir -r requirements/image.txt
COPY . source
# Node.js comes as a package if the page is not built yet, and stays in this stage.
RUN if [ -n "$COMMIT" ]; then echo "$COMMIT" > source/src/longthread/commit.txt; fi \
 && tools/bin/python -m pip wheel --quiet --no-cache-dir --no-deps --wheel-dir wheels ./source ./source/packages/longthread-demo
# All that runs is in one folder, without pip, tests and symbols for debuggers.
RUN apt-get update -qq && apt-get install -qq --yes --no-install-recommends binutils >/dev/null
RUN python3 -m venv --without-pip /opt/longthread \
 && tools/bin/python -m pip --python /opt/longthread/bin/python install --quiet --no-cache-dir --no-compile \
        --constraint requirements/dev.txt --find-links wheels "longthread[${EXTRAS}]" \
 && mkdir /opt/longthread/share \
 && tools/bin/cyclonedx-py environment --short-PURLs --output-reproducible --of JSON \
        -o /opt/longthread/share/sbom.cdx.json /opt/longthread/bin/python \
 && find /opt/longthread/lib -depth -type d -name tests -exec rm -r {} + \
 && find /opt/longthread/lib -name '*.so' -not -path '*.libs/*' -exec strip --strip-unneeded {} +
# The file system will be read-only: what is loaded for an answer is compiled here, by asking.
RUN export LONGTHREAD_DATA_DIR=/build/data PATH=/opt/longthread/bin:$PATH \
 && python -m compileall -q /opt/longthread/lib/python*/site-packages/longthread* \
 && python -c 'import longthread.server.app, longthread.server.gateway' \
 && longthread ask 'How many rockets are there?' --source demo --model demo

FROM ${BASE}
LABEL org.opencontainers.image.title="Longthread" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /data --shell /usr/sbin/nologin longthread \
 && install --directory --owner longthread --group longthread --mode 0700 /data
COPY --from=build /opt/longthread /opt/longthread
ENV PATH=/opt/longthread/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HOME=/data \
    LONGTHREAD_DATA_DIR=/data \
    LONGTHREAD_HOST=0.0.0.0 \
    LONGTHREAD_AUTH=login
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8765 8766
STOPSIGNAL SIGTERM
# The gateway listens on 8766: compose.yaml asks there.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ.get('LONGTHREAD_PORT', '8765') + '/ready', timeout=4)"]
# The process itself is PID 1: on SIGTERM it takes no more questions, leaves its runs to other servers, and ends.
ENTRYPOINT ["longthread"]
CMD ["serve"]
