# hsm in a container. See docs/containers.md.
#
#   docker build -t hsm .                                   for the CPU
#   docker build -t hsm --build-arg VARIANT=cuda .          with CUDA
#   docker build -t hsm --build-arg BASE=ubuntu:24.04 .     on another base (Debian 12 or later, Ubuntu 24.04)
ARG BASE=debian:12

FROM ${BASE} AS build
# cpu or cuda
ARG VARIANT=cpu
ARG HSM_VENV=/opt/venv
WORKDIR /src
COPY scripts/setup scripts/lib.sh scripts/
RUN case "$VARIANT" in cpu) scripts/setup --cpu ;; cuda) scripts/setup ;; *) echo "VARIANT is cpu or cuda" >&2; exit 1 ;; esac
COPY . .
# What hsm --version shows as the commit; the repository itself stays outside the build.
ARG COMMIT=unknown
RUN cmake --preset release -DHSM_TESTS=OFF -DHSM_COMMIT="$COMMIT" \
          -DHSM_CUDA="$(if [ "$VARIANT" = cuda ]; then echo ON; else echo OFF; fi)" \
 && cmake --build --preset release --target hsm -j "$(nproc)" \
 && cmake --install build/release --prefix /opt/hsm --strip

FROM ${BASE} AS run
COPY --from=build /opt/hsm /opt/hsm
RUN ln -s /opt/hsm/bin/hsm /usr/local/bin/hsm \
 && useradd --uid 10001 --user-group --no-create-home --home-dir /data --shell /usr/sbin/nologin hsm \
 && mkdir /data
# Where the NVIDIA container runtime is installed it lends the devices and the driver.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER hsm
WORKDIR /data
ENTRYPOINT ["hsm"]
CMD ["--help"]
