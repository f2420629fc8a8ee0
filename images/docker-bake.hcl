# All three images as one graph, for those who have buildx:
#   docker buildx bake -f images/docker-bake.hcl
#   REGISTRY=registry.example/hypic TAG=0.1.0 docker buildx bake -f images/docker-bake.hcl --push
# `python3 -m local images` builds the same Dockerfiles without buildx.

variable "REGISTRY" { default = "localhost/hypic" }
variable "TAG" { default = "dev" }
variable "PYTHON_BASE" { default = "python:3.11.14-slim-bookworm" }
variable "ENGINE_BASE" { default = "lmsysorg/sglang:v0.5.14" }

group "default" {
  targets = ["operator", "router", "engine"]
}

target "shared" {
  context = "."
  args = {
    PYTHON_BASE = PYTHON_BASE
    VERSION     = TAG
  }
}

target "operator" {
  inherits   = ["shared"]
  dockerfile = "images/operator/Dockerfile"
  tags       = ["${REGISTRY}/operator:${TAG}"]
}

target "router" {
  inherits   = ["shared"]
  dockerfile = "images/router/Dockerfile"
  tags       = ["${REGISTRY}/router:${TAG}"]
}

target "engine" {
  inherits   = ["shared"]
  dockerfile = "images/engine/Dockerfile"
  args       = { ENGINE_BASE = ENGINE_BASE }
  tags       = ["${REGISTRY}/engine:${TAG}"]
}
