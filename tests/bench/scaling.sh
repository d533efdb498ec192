#!/usr/bin/env bash
# How training and measuring scale over the GPUs of one host: 1, 2, 4 and 8 of those that nvidia-smi lists, or
# that CUDA_VISIBLE_DEVICES names. Each part ends with a table. Build first (targets: all).
#
#   tests/bench/scaling.sh [PART…]           without names: all that follow
#
#   sft           training of SmolLM2-135M's shape, as many sequences a GPU: efficiency of 0.9 wanted at 8
#   sft_7b        the same of Qwen2.5-7B's shape: all weights are trained, layers are computed again
#   losses, losses_7b  as many sequences in all, over the GPUs: losses against one GPU's
#   measure       gpu_bench throughput, a process a GPU, all at once: 7.5 times one GPU's rate wanted at 8
#   cores         the same on all GPUs with all, half and a quarter of the host's cores
#   null          gpu_bench null on one GPU, then on each while the others do the same
#   spread        gpu_bench spread, likewise
#   workflow      workflows/pretrained.yaml, which trains, samples and measures on all GPUs: time, idle GPUs
#                 by phase
#
# What has ended keeps its log in LOGS and does not run again: the same command goes on where the time limit
# cut a part off. FRESH=1 removes the logs of the parts that are named: for other settings or machines.
# Exit code 1: something failed or was cut off, 3: no GPU.
#
# Environment: BUILD (build/release), LOGS ($BUILD/scaling), PART_SECONDS (580: of each part), PEAK (989:
# TFLOP/s of a GPU in bfloat16), GPUS ("1 2 4 8": how many are tried), SEQUENCES (16 of 2,048 tokens on each
# GPU), STEPS (10), SFT_ARGS (more for model_bench, such as --deterministic), SEQUENCES_7B (32), STEPS_7B (3),
# LOSS_SEQUENCES (16 in all), LOSS_STEPS (50), LOSS_STEPS_7B (10), CANDIDATES (500 on each GPU), MODEL_FOLDER
# (a Hugging Face folder for pretrained.yaml; without it there is no workflow), SHARDS_A_GPU (1: measuring
# shards that share a GPU), WORKFLOW_SETTINGS (PATH=VALUE…). WARPSMITH_BENCH_TARGET (sm_90a) and what NCCL
# reads are left as they are.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build/release}
LOGS=${LOGS:-$BUILD/scaling}
PEAK=${PEAK:-989}
FRESH=${FRESH:-0}
read -ra sft_args <<<"${SFT_ARGS:-}"
read -ra workflow_settings <<<"${WORKFLOW_SETTINGS:-}"
all_parts=(sft sft_7b losses losses_7b measure cores null spread workflow)
failed=0 deadline=0 warm=0 pids=()
trap '[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null' EXIT

# By UUID: CUDA and nvidia-smi count in different orders.
mapfile -t gpus < <(nvidia-smi --query-gpu=uuid --format=csv,noheader 2>/dev/null | grep '^GPU-')
if [ ${#gpus[@]} -gt 0 ] && [ -n "${CUDA_VISIBLE_DEVICES+set}" ]; then
  IFS=, read -ra gpus <<<"$CUDA_VISIBLE_DEVICES"
fi
if [ ${#gpus[@]} = 0 ]; then
  printf 'scaling.sh: no GPU here: nvidia-smi is missing or lists none, or %s\n' \
    'CUDA_VISIBLE_DEVICES names none' >&2
  exit 3
fi
counts=()
for n in ${GPUS:-1 2 4 8}; do [ "$n" -gt ${#gpus[@]} ] || counts+=("$n"); done
if [ ${#counts[@]} = 0 ]; then
  printf 'scaling.sh: GPUS is "%s", and there are %d\n' "$GPUS" ${#gpus[@]} >&2
  exit 2
fi
least=${counts[0]} most=${counts[-1]}

first() { local IFS=,; printf '%s' "${gpus[*]:0:$1}"; }  # the first N, as CUDA_VISIBLE_DEVICES

has_ended() { [ -e "$LOGS/$1.log" ] && tail -n 1 "$LOGS/$1.log" | grep -q '^-- ended'; }
fail() { printf -- '   %s\n' "$1"; failed=$((failed + 1)); }

# Runs a command with a log, unless that has ended before. A log without its end is run again.
step() {  # NAME command…
  local name=$1 left=$((deadline - SECONDS)) begin=$SECONDS rc
  shift
  if has_ended "$name"; then
    printf '   %s: is there already\n' "$name"
    return 0
  fi
  if [ "$left" -le 0 ]; then
    fail "$name: not begun, the part's time is up (run it again, or PART_SECONDS)"
    return 1
  fi
  timeout --kill-after=20 "$left" "$@" >"$LOGS/$name.log" 2>&1
  rc=$?
  if [ "$rc" = 0 ]; then
    printf -- '-- ended, %d s\n' "$((SECONDS - begin))" >>"$LOGS/$name.log"
    printf '   %s: %d s\n' "$name" "$((SECONDS - begin))"
    return 0
  fi
  if [ "$rc" = 124 ] || [ "$rc" = 137 ]; then
    fail "$name: cut off after $((SECONDS - begin)) s (run it again, or PART_SECONDS)"
  else
    grep -v '^[0-9:.]* [a-z]* info' "$LOGS/$name.log" | tail -n 5
    fail "$name: exit code $rc, $LOGS/$name.log"
  fi
  return 1
}

# Cells of a table, in lines "a|b|c".
table() {
  awk '
    { n = split($0, cell, "|"); line[NR] = $0
      for (i = 1; i <= n; ++i) if (length(cell[i]) > width[i]) width[i] = length(cell[i]) }
    END {
      for (r = 1; r <= NR; ++r) {
        n = split(line[r], cell, "|")
        for (i = 1; i <= n; ++i) printf "%s%" width[i] "s", (i > 1 ? "  " : "   "), cell[i]
        printf "\n"
      }
    }'
}

# Runs a command that writes a table's lines to stdout and what is wanted to stderr, which comes last.
with_wanted() {
  "$@" 2>"$LOGS/wanted" | table
  sed 's/^/   /' "$LOGS/wanted"
  rm -f "$LOGS/wanted"
}

model_bench() {  # NAME GPUS argument…
  local name=$1 n=$2
  shift 2
  step "$name" env CUDA_VISIBLE_DEVICES="$(first "$n")" \
    "$BUILD/bench/model_bench" "$@" --gpu --only train --ranks "$n"
}

# Of sft and sft_7b. Efficiency: of the tokens that so many GPUs would train at the first line's rate.
training_lines() {  # PART WANTED
  local n
  for n in "${counts[@]}"; do
    has_ended "$1-$n" || continue
    awk -v n="$n" '
      function number_before(text) { return match($0, "[0-9.]+ " text) ? substr($0, RSTART) + 0 : 0 }
      /^training / { ms = number_before("ms/step"); is_rate = 1 }
      /with the optimiser [0-9.]* ms/ {
        match($0, /with the optimiser [0-9.]+/); ms = substr($0, RSTART + 19) + 0
      }
      /^with the optimiser: / { is_rate = 1 }
      is_rate { rate = number_before("tokens/s"); peak = number_before("% of the peak"); is_rate = 0 }
      /^NCCL / { least = $2 / 1e3; greatest = $4 / 1e3 }
      /^memory / { tensors = number_before("GiB of tensors"); reserved = number_before("GiB reserved") }
      END { print n, ms / 1e3, rate, peak, least + 0, greatest + 0, tensors + 0, reserved + 0 }
    ' "$LOGS/$1-$n.log"
  done | awk -v wanted="$2" '
    BEGIN { printf "GPUs|s a step|tokens/s|efficiency|%% of the peak|"
            print "s in NCCL a step, by rank|% of the step|GiB of tensors|reserved" }
    NR == 1 { gpus = $1; rate = $3 }
    { efficiency = rate > 0 ? $3 / $1 / (rate / gpus) : 0; last = $1
      nccl = share = "-"
      if ($1 > 1) {
        nccl = sprintf("%.3f to %.3f", $5, $6)
        share = sprintf("%.1f to %.1f", 100 * $5 / $2, 100 * $6 / $2)
      }
      tensors = reserved = "?"  # an older torch does not say
      if ($7 > 0) { tensors = sprintf("%.1f", $7); reserved = sprintf("%.1f", $8) }
      printf "%d|%.3f|%.0f|%.3f|%.1f|%s|%s|", $1, $2, $3, efficiency, $4, nccl, share
      printf "%s|%s\n", tensors, reserved }
    END { if (last == 8)
            printf "efficiency at 8 GPUs: %.3f (wanted: at least %s)\n", efficiency, wanted > "/dev/stderr" }'
}

training() {  # PART SHAPE argument…
  local part=$1 n
  shift
  for n in "${counts[@]}"; do model_bench "$part-$n" "$n" "$@" --peak "$PEAK"; done
  with_wanted training_lines "$part" 0.9
}

losses() {  # PART STEPS argument…
  local part=$1 steps=$2 n all=${LOSS_SEQUENCES:-16}
  shift 2
  for n in "${counts[@]}"; do
    if [ $((all % n)) != 0 ]; then
      fail "LOSS_SEQUENCES is $all: not to be shared by $n GPUs"
      continue
    fi
    model_bench "$part-$n" "$n" "$@" --losses --steps "$steps" --sequences $((all / n))
  done
  for n in "${counts[@]}"; do
    has_ended "$part-$n" || continue
    awk -v n="$n" '$1 == "step" && $3 == "loss" { print n, $2, $4 }' "$LOGS/$part-$n.log"
  done | awk -v steps="$steps" '
    NR == 1 { base = $1 }
    !($1 in last) { order[++kinds] = $1; first[$1] = $3 }
    $1 == base { loss[$2] = $3 }
    { last[$1] = $3; ++seen[$1]; off = ($3 - loss[$2]) / loss[$2]; if (off < 0) off = -off
      if (!($1 in worst) || off > worst[$1]) { worst[$1] = off; at[$1] = $2 } }
    END { print "GPUs|steps|first loss|last loss|furthest from " base " GPU, %|at step"
      for (i = 1; i <= kinds; ++i) { g = order[i]
        printf "%d|%d of %d|%.6f|%.6f|", g, seen[g], steps, first[g], last[g]
        printf "%.5f|%d\n", 100 * worst[g], at[g] } }' | table
}

# A process on each of the first GPUS, with logs NAME-gpu0.log and so on; NAME.log: what they took together.
at_once() {  # NAME GPUS RESULT MODE [prefix…]: RESULT: the line that a whole log has
  local name=$1 n=$2 result=$3 mode=$4 left i rc ended=0
  shift 4
  if has_ended "$name"; then
    printf '   %s: is there already\n' "$name"
    return 0
  fi
  warm_up
  left=$((deadline - SECONDS))
  if [ "$left" -le 0 ]; then
    fail "$name: not begun, the part's time is up (run it again, or PART_SECONDS)"
    return 1
  fi
  local TIMEFORMAT='took %R %U %S'
  { time {
    pids=()
    for ((i = 0; i < n; ++i)); do
      CUDA_VISIBLE_DEVICES=${gpus[i]} timeout --kill-after=20 "$left" "$@" "$BUILD/bench/gpu_bench" "$mode" \
        >"$LOGS/$name-gpu$i.log" 2>&1 &
      pids+=($!)
    done
    wait "${pids[@]}"
    pids=()
  }; } 2>"$LOGS/$name.log"
  for ((i = 0; i < n; ++i)); do
    if grep -q "$result" "$LOGS/$name-gpu$i.log"; then
      ended=$((ended + 1))
    else
      tail -n 3 "$LOGS/$name-gpu$i.log"
    fi
  done
  if [ "$ended" != "$n" ]; then
    fail "$name: $ended of $n ended (run it again, PART_SECONDS, or see $LOGS/$name-gpu*.log)"
    return 1
  fi
  rc=$(awk '$1 == "took" { printf "%d", $2 }' "$LOGS/$name.log")
  printf -- '-- ended, %d s\n' "$rc" >>"$LOGS/$name.log"
  printf '   %s: %d s\n' "$name" "$rc"
}

# First programs are compiled, and each GPU gets its ceilings and its record of quick contexts.
warm_up() {
  local i begin=$SECONDS left=$((deadline - SECONDS))
  [ "$warm" = 0 ] && [ "$left" -gt 0 ] || return 0
  warm=1 pids=()
  for ((i = 0; i < most; ++i)); do
    WARPSMITH_BENCH_CANDIDATES=20 CUDA_VISIBLE_DEVICES=${gpus[i]} timeout --kill-after=20 "$left" \
      "$BUILD/bench/gpu_bench" throughput >"$LOGS/warm-gpu$i.log" 2>&1 &
    pids+=($!)
    [ "$i" -gt 0 ] || wait "${pids[0]}"  # the first compiles
  done
  wait "${pids[@]}"
  pids=()
  printf '   warm-up: %d s\n' "$((SECONDS - begin))"
}

# The rate of several is that of all candidates in the time of the slowest process.
throughput_lines() {  # WANTED, then GPUS CORES NAME each
  local wanted=$1
  shift
  while [ $# -gt 0 ]; do
    if has_ended "$3"; then
      cat "$LOGS/$3.log" "$LOGS/$3"-gpu*.log | awk -v n="$1" -v cores="$2" '
        function after(text) { return match($0, text) ? substr($0, RSTART + RLENGTH) + 0 : 0 }
        $1 == "took" { wall = $2; cpu = $3 + $4 }
        /^throughput: / {
          ++logs; all += $2; seconds = after("candidates in "); if (seconds > longest) longest = seconds
          median += after("GPU held median "); mean += after("s, mean "); lost += after("processes lost ")
        }
        /^  not as expected: / { wrong += $4 }
        END { print n, cores, all, longest, all / longest, cpu / wall, cpu / all, median / logs, mean / logs,
                    lost, wrong }'
    fi
    shift 3
  done | awk -v wanted="$wanted" '
    BEGIN { printf "GPUs|cores|candidates|s|a second|of the first line|cores busy|CPU s a candidate|"
            print "GPU held s, median|mean|processes lost|verdicts wrong" }
    NR == 1 { rate = $5 }
    { ratio = $5 / rate; last = $1
      printf "%d|%d|%d|%.1f|%.2f|%.2f x|", $1, $2, $3, $4, $5, ratio
      printf "%.1f|%.2f|%.3f|%.3f|%d|%d\n", $6, $7, $8, $9, $10, $11 }
    END { if (wanted > 0 && last == 8)
            printf "8 GPUs: %.2f times one (wanted: at least %s)\n", ratio, wanted > "/dev/stderr" }'
}

measure() {
  local n rows=()
  export WARPSMITH_BENCH_CANDIDATES=${CANDIDATES:-500}
  for n in "${counts[@]}"; do
    at_once "measure-$n" "$n" '^throughput: ' throughput
    rows+=("$n" "$(nproc)" "measure-$n")
  done
  with_wanted throughput_lines "$([ "$least" = 1 ] && echo 7.5 || echo 0)" "${rows[@]}"
}

cores() {
  local all share rows=("$most" "$(nproc)" "measure-$most") c
  export WARPSMITH_BENCH_CANDIDATES=${CANDIDATES:-500}
  mapfile -t all < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
  at_once "measure-$most" "$most" '^throughput: ' throughput
  for share in 2 4; do
    c=$((${#all[@]} / share))
    [ "$c" -ge 1 ] || continue
    at_once "cores-$c" "$most" '^throughput: ' throughput taskset -c "$(IFS=,; printf '%s' "${all[*]:0:$c}")"
    rows+=("$most" "$c" "cores-$c")
  done
  with_wanted throughput_lines 0 "${rows[@]}"
}

beside_others() {  # PART RESULT: of one GPU alone, then of all at once
  local part=$1 result=$2 n i
  at_once "$part-1" 1 "$result" "$part"
  [ "$most" = 1 ] || at_once "$part-$most" "$most" "$result" "$part"
  for n in 1 "$most"; do
    has_ended "$part-$n" || continue
    for ((i = 0; i < n; ++i)); do
      printf '%d|%d|%s\n' "$i" "$n" "$(grep "$result" "$LOGS/$part-$n-gpu$i.log" | sed 's/^[^:]*: //')"
    done
    [ "$most" != 1 ] || break
  done | { printf 'GPU|at work|\n'; cat; } | table
}

workflow() {
  local run=$LOGS/workflow-$most-run
  local settings=(resources.train.gpus="$most" resources.generate.gpus="$most"
    resources.measure.shards_a_gpu="${SHARDS_A_GPU:-1}" resources.train.memory=$((16 + 8 * most))GiB)
  local cpus=$((2 + 2 * most)) setting more=()
  [ "$cpus" -le "$(nproc)" ] || cpus=$(nproc)
  if [ -z "${MODEL_FOLDER:-}" ]; then
    printf '   left out: MODEL_FOLDER names no Hugging Face folder\n'
    return 0
  fi
  settings+=(resources.train.cpus="$cpus" params.model="$(realpath "$MODEL_FOLDER")"
    "${workflow_settings[@]}")
  for setting in "${settings[@]}"; do more+=(--set "$setting"); done
  [ "$FRESH" = 0 ] || rm -rf "$run"
  step "workflow-$most" env CUDA_VISIBLE_DEVICES="$(first "$most")" \
    "$BUILD/warpsmith" run workflows/pretrained.yaml --run-dir "$run" "${more[@]}"
  # What was cut off has phases, too.
  [ -d "$run/journal" ] || return 0
  python3 tests/bench/phases.py "$run" "$most" "$BUILD/warpsmith" | tee "$LOGS/workflow-$most.phases" |
    sed 's/^/   /'
}

run() {
  local limit=${PART_SECONDS:-580} begin=$SECONDS before=$failed
  deadline=$((SECONDS + limit))
  printf '== %s\n' "$1"
  [ "$FRESH" = 0 ] || rm -f "$LOGS/$1"-[0-9]*.log
  case $1 in
    sft) training sft smollm2-135m --sequences "${SEQUENCES:-16}" --steps "${STEPS:-10}" "${sft_args[@]}" ;;
    sft_7b) training sft_7b qwen2.5-7b --sequences "${SEQUENCES_7B:-32}" --micro 4 --recompute --states auto \
      --steps "${STEPS_7B:-3}" "${sft_args[@]}" ;;
    losses) losses losses "${LOSS_STEPS:-50}" smollm2-135m "${sft_args[@]}" ;;
    losses_7b) losses losses_7b "${LOSS_STEPS_7B:-10}" qwen2.5-7b --micro 2 --recompute --states auto \
      "${sft_args[@]}" ;;
    measure | cores | workflow) "$1" ;;
    null) beside_others null '^null test: ' ;;
    spread) beside_others spread '^spread: ' ;;
  esac
  printf -- '-- %s: %d s, %d failed or cut off\n' "$1" "$((SECONDS - begin))" "$((failed - before))"
}

[ $# -gt 0 ] || set -- "${all_parts[@]}"
for name in "$@"; do
  [[ " ${all_parts[*]} " = *" $name "* ]] && continue
  printf 'scaling.sh: no part %s; parts: %s\n' "$name" "${all_parts[*]}" >&2
  exit 2
done
mkdir -p "$LOGS"
printf '%d GPUs here, %d cores; tried: %s; logs: %s\n' ${#gpus[@]} "$(nproc)" "${counts[*]}" "$LOGS"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sort | uniq -c
for name in "$@"; do run "$name"; done
[ "$failed" = 0 ]
