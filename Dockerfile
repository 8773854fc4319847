# The image of agentproxy: docker build -t agentproxy .
FROM golang:1.26.8-trixie AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY adapters/httpapi/msgpack/go.mod adapters/httpapi/msgpack/
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
# The version of a release: without it the program calls itself dev, as .git is not here.
ARG VERSION
# SQLite needs cgo: the compiler is in this image, the C library in the next.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=1 go build -trimpath -ldflags="-s -w -X agentproxy/cmd/internal/version.set=$VERSION" \
    -o /agentproxy ./cmd/agentproxy
# The client for those who the service sells to, which /download/ offers.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    for os in linux darwin windows; do for arch in amd64 arm64; do \
    CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath \
    -ldflags="-s -w -X agentproxy/cmd/internal/version.set=$VERSION" -o /download/apx-$os-$arch ./cmd/apx || exit 1; done; done

FROM debian:13.2-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates wget \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /data --create-home --shell /usr/sbin/nologin agentproxy
COPY --from=build /agentproxy /usr/local/bin/agentproxy
COPY --from=build /download /usr/share/agentproxy/download
ENV AGENTPROXY_DOWNLOADS=/usr/share/agentproxy/download
COPY LICENSE NOTICE THIRD_PARTY_LICENSES /usr/share/doc/agentproxy/
# With SQLite the database and the secret are kept here.
WORKDIR /data
VOLUME /data
USER 10001:10001
# The API, the gateway, and the admin pages.
EXPOSE 8080 8081 8082
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["wget", "-q", "-O", "/dev/null", "http://127.0.0.1:8082/healthz"]
ENTRYPOINT ["/usr/local/bin/agentproxy"]
CMD ["serve"]
