#!/usr/bin/env bash
# Fuzzing of the loaders (loaders_fuzz.cc) under address and undefined-behaviour sanitizers.
#   fuzz.sh build FOLDER               compiles the program with clang into FOLDER/build: a few minutes the first time
#   fuzz.sh run FOLDER MODE SECONDS    MODE: task, plan, workflow, site, records, run, manifest, safetensors or
#                                      tokenizer. What it learns stays in FOLDER/corpus, an input that fails in
#                                      FOLDER/findings
# Exit 77: this machine lacks clang or libFuzzer; the reason is printed.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)

find_clang() {
  local clang
  for clang in clang++-14 clang++-15 clang++-16 clang++-17 clang++-18 clang++-19 clang++; do
    command -v "$clang" >/dev/null || continue
    [ -n "$(ls "$("$clang" -print-resource-dir)"/lib/linux/libclang_rt.fuzzer-*.a \
      "$("$clang" -print-resource-dir)"/lib/*/libclang_rt.fuzzer.a 2>/dev/null)" ] && { echo "$clang"; return; }
  done
  echo 'fuzz.sh: skipped: no clang++ with libFuzzer here (Debian: clang, libclang-rt-dev)' >&2
  exit 77
}

build() {  # FOLDER
  cmake -S "$source" -B "$1/build" -G Ninja -DCMAKE_CXX_COMPILER="$clang" -DCMAKE_C_COMPILER="${clang/++/}" \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO='-O1 -gline-tables-only' \
    -DWARPSMITH_SANITIZE=fuzzer-no-link,address,undefined -DWARPSMITH_MODULES='base;yaml;records;task;workflow;tokenizer;fuzz' \
    -DWARPSMITH_UNITY=ON -DWARPSMITH_TORCH=OFF -DWARPSMITH_CUDA=OFF -DWARPSMITH_SLURM=OFF -DWARPSMITH_BENCH=OFF >"$1/configure.log" ||
    { cat "$1/configure.log" >&2; exit 1; }
  cmake --build "$1/build" --target loaders_fuzz -j 2
}

# Inputs to begin with: files of the checkout, each under the name of its content.
seed() {  # CORPUS MODE
  local files=()
  case $2 in
    task) files=("$source"/datasets/*/task.yaml) ;;
    plan) files=("$source"/datasets/*/candidates/*/*.cu) ;;
    workflow) files=("$source"/workflows/*.yaml "$source"/tests/workflows/*.yaml "$source"/tests/workflow/cases/*.txt) ;;
    site) files=("$source"/slurm/sites/*.yaml "$source"/tests/workflow/site_cases.txt) ;;
    records) files=("$source"/tests/fuzz/records/*.jsonl) ;;
    run) files=("$source"/tests/fuzz/run/*.json) ;;
    manifest) files=("$source"/tests/fuzz/manifest/*.json) ;;
    safetensors) files=("$source"/tests/fuzz/safetensors/*.safetensors) ;;
    tokenizer) files=("$source"/tests/fuzz/tokenizer/*.json) ;;
  esac
  local file
  for file in "${files[@]}"; do cp "$file" "$1/$(sha1sum <"$file" | cut -c1-40)"; done
}

run() {  # FOLDER MODE SECONDS
  mkdir -p "$1/corpus/$2" "$1/findings"
  seed "$1/corpus/$2" "$2"
  "$1/build/loaders_fuzz" "$2" "$source" -max_total_time="$3" -timeout=10 -rss_limit_mb=2048 -max_len=16384 \
    -print_final_stats=1 -verbosity=0 -artifact_prefix="$1/findings/$2-" "$1/corpus/$2"
}

clang=$(find_clang)
case ${1:-} in
  build) mkdir -p "$2" && build "$2" ;;
  run) run "$2" "$3" "$4" ;;
  *) echo 'usage: fuzz.sh build FOLDER | run FOLDER task|plan|workflow|site|records|run|manifest|safetensors|tokenizer SECONDS' >&2; exit 2 ;;
esac
