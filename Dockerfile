# Two small images of one build: warmpath, the router, and replica, a model
# server without a model for trying it out.
#
#   docker build --target warmpath -t warmpath .

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ENV CGO_ENABLED=0
RUN go build -trimpath -ldflags '-s -w' -o /out/ ./cmd/warmpath ./bench/replica/cmd/replica

FROM scratch AS replica
COPY --from=build /out/replica /replica
USER 65532:65532
ENTRYPOINT ["/replica"]

FROM scratch AS warmpath
# For a trace collector behind TLS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/warmpath /warmpath
USER 65532:65532
ENTRYPOINT ["/warmpath"]
CMD ["serve", "/etc/warmpath/warmpath.yaml"]
