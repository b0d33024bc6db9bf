# syntax=docker/dockerfile:1
# One image per program: `docker build .` makes the dispatcher, `docker build --target lambda-janitor .` the janitor.
# scripts/build-image passes the version; for other architectures give --platform, the compiler itself is never emulated.

# GO_VERSION is the Go release that compiles.
ARG GO_VERSION=1.26

FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-bookworm AS build
WORKDIR /src
# GOPROXY is where modules come from: --build-arg GOPROXY=https://...
ARG GOPROXY
ENV CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false" GOPROXY=${GOPROXY}
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=dev
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    mkdir -p /out \
    && export GOOS="${TARGETOS}" GOARCH="${TARGETARCH}" \
    && go build -ldflags "-s -w -X main.version=${VERSION}" -o /out/dispatcher ./cmd/dispatcher \
    && go build -tags lambda.norpc -ldflags "-s -w -X main.version=${VERSION}" -o /out/lambda-janitor ./cmd/lambda-janitor

# base holds CA certificates, time zones, and a user without a name to log in with; no shell, no package manager.
FROM gcr.io/distroless/static-debian12:nonroot AS base
ARG VERSION=dev
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.source="https://github.com/queuehook/queuehook" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}" \
    org.opencontainers.image.created="${CREATED}"
# A number, so that Kubernetes can tell that it is not root.
USER 65532:65532
STOPSIGNAL SIGTERM

FROM base AS lambda-janitor
LABEL org.opencontainers.image.title="queuehook lambda-janitor" \
    org.opencontainers.image.description="Gives the tasks of dead dispatchers back: a Lambda function, or one sweep and out"
COPY --from=build /out/lambda-janitor /usr/local/bin/lambda-janitor
HEALTHCHECK NONE
ENTRYPOINT ["/usr/local/bin/lambda-janitor"]

FROM base AS dispatcher
LABEL org.opencontainers.image.title="queuehook dispatcher" \
    org.opencontainers.image.description="Delivers tasks that wait in Redis to webhooks"
COPY --from=build /out/dispatcher /usr/local/bin/dispatcher
EXPOSE 8080
# Whether the process works, not whether Redis is there: restarting a dispatcher brings no Redis back.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["/usr/local/bin/dispatcher", "health"]
ENTRYPOINT ["/usr/local/bin/dispatcher"]
