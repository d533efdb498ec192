#!/usr/bin/env bash
# Every figure of measuring on a GPU, one after the other, on the first GPU that is seen: the last lines of each
# part here, all of it in a folder. Build first (targets: all).
#
#   tests/bench/gpu_figures.sh [PART…]       without names: all, some 25 minutes on an H200
#
#   tests         ctest -L gpu
#   probe         bandwidth, matrix rates, latency of launches
#   null          programs against themselves: 1.00 +- 0.01 wanted
#   null_python, null_python_small  references as candidates of tier python: 1.00 and, with their work done twice, 0.50
#                 wanted; some 10 minutes each on an H100, so neither runs where no part is named
#   known_ratio   in every tier, work done twice: 0.50 +- 0.01 wanted
#   spread        ten repeats of 20 candidates, by fresh processes: sd of the log-speedup
#   checks        twenty checks of every right candidate
#   all           every candidate of the dataset: verdicts, seconds that the GPU was held
#   throughput    500 candidates of which 5 % loop or crash
#   python_eager  TorchScript's eager against Python's
#   baselines     each baseline of each task over eager
#   tricks        the table of tricks of tier plan, and honest programs
#   rows          how the clock of tier extension scatters, by the length of its rows
#   extension     the table of tricks of tier extension, and honest programs
#   python        the table of tricks of tier python, and honest programs (each starts a python3: 12 minutes, 6 to 11 by three at once)
#   degenerate    warpsmith validate datasets --device auto
#   datasets      warpsmith validate datasets --measure --device auto
#   sanitizer     compute-sanitizer over every right candidate (memcheck; WARPSMITH_BENCH_A_TASK=N: N of each task), several tasks at once
#   wrong_gpu     a workflow that names another type: refused, no number
#   quickstart    the three stages
#
# Environment: BUILD (build/release), LOGS ($BUILD/gpu-figures), PART_SECONDS (580: a part that takes longer is stopped; python has twice that),
# AT_ONCE (tables of tricks of tier python at once; 3 where there are 12 processors, else 1).
set -uo pipefail
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build/release}
LOGS=${LOGS:-$BUILD/gpu-figures}
limit=${PART_SECONDS:-580}
sanitizer=$(command -v compute-sanitizer || echo "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer")
mkdir -p "$LOGS"
failed=0

part() {  # NAME LINES command…
  local name=$1 lines=$2 begin=$SECONDS
  shift 2
  printf '== %s\n' "$name"
  timeout --kill-after=10 "$limit" "$@" >"$LOGS/$name.log" 2>&1
  local rc=$?
  grep -v '^[0-9:.]* [a-z]* info' "$LOGS/$name.log" | tail -n "$lines"
  printf -- '-- %s: exit code %d, %d s\n' "$name" "$rc" "$((SECONDS - begin))"
  [ "$rc" = 0 ] || failed=$((failed + 1))
}

wrong_gpu() {  # must fail with its reason, and store nothing
  local run=$LOGS/wrong-gpu type=L40
  rm -rf "$run"
  nvidia-smi -L 2>/dev/null | grep -q L40 && type=H100
  "$BUILD/warpsmith" run workflows/quickstart.yaml --run-dir "$run" --set "device=$type" && return 1
  "$BUILD/warpsmith" validate datasets/gelu --device "$type" && return 1  # by the job itself
  # Were there a results.h5, its export would have to hold no measurement.
  [ ! -e "$run/results.h5" ] || "$BUILD/warpsmith" export "$run" --format json |
    python3 -c 'import json, sys; sys.exit(len(json.load(sys.stdin)["measurements"]) > 0)'
}

quickstart() {
  rm -rf "$LOGS/quickstart"
  "$BUILD/warpsmith" run workflows/quickstart.yaml --run-dir "$LOGS/quickstart" ${QUICKSTART_ARGS:-} &&
    "$BUILD/warpsmith" export "$LOGS/quickstart" --format json >"$LOGS/quickstart.json" &&
    python3 - "$LOGS/quickstart.json" <<'EOF'
import collections, json, sys
export = json.load(open(sys.argv[1]))
print("results.h5: measurements by device:", dict(collections.Counter(
    (m["device"]["kind"], m["device"]["name"]) for m in export["measurements"] if m.get("device"))))
EOF
}

# What a time is worth does not matter here: each process has a lock of its own, and some tasks.
sanitizer() {
  local jobs=$(($(nproc) / 2)) folder i=0 task pids=() failed=0
  [ "$jobs" -le 8 ] || jobs=8
  [ "$jobs" -ge 1 ] || jobs=1
  folder=$(mktemp -d)
  for task in "$PWD"/datasets/*/; do
    mkdir -p "$folder/$((i % jobs))/datasets"
    ln -s "${task%/}" "$folder/$((i++ % jobs))/datasets/"
  done
  for ((i = 0; i < jobs; ++i)); do
    WARPSMITH_TIMING_LOCK=$folder/$i/lock "$sanitizer" --error-exitcode 9 --print-limit 5 \
      "$BUILD/bench/gpu_bench" few "$folder/$i/datasets" >"$folder/$i/log" 2>&1 &
    pids+=($!)
  done
  for i in "${!pids[@]}"; do
    wait "${pids[i]}" || failed=1
    cat "$folder/$i/log"
  done
  awk '/^few: / { timed += $2; all += $4 } /ERROR SUMMARY/ { errors += $4; ++ended }
       END { printf "sanitizer: %d of %d right candidates were timed, %d errors, %d of '"$jobs"' processes ended\n", timed, all, errors, ended }' "$folder"/*/log
  rm -rf "$folder"
  return $failed
}

# Processes of several candidates at once: they take turns at the GPU, and need not at starting python3.
python_tricks() {
  local at_once=${AT_ONCE:-$(($(nproc) >= 12 ? 3 : 1))} i pids=() failed=0
  for ((i = 1; i <= at_once; ++i)); do
    "$BUILD/tests/hack_table" --tier python --honest --share "$i/$at_once" >"$LOGS/python-$i.log" 2>&1 &
    pids+=($!)
  done
  for i in "${!pids[@]}"; do
    wait "${pids[i]}" || failed=1
    cat "$LOGS/python-$((i + 1)).log"
  done
  awk '/^tricks: / { all += $2; caught += $3; vain += $5; missed += $8 } /^honest programs: / { honest += $3; alarms += $4; ++ended }
       END { printf "python: %d tricks, %d caught, %d in vain, %d missed; %d honest programs, %d false alarms; %d of '"$at_once"' tables ended\n",
             all, caught, vain, missed, honest, alarms, ended }' "$LOGS"/python-*.log
  return $failed
}

run() {
  case $1 in
    tests) part tests 12 ctest --test-dir "$BUILD" -L gpu --output-on-failure ;;
    probe) part probe 20 "$BUILD/warpsmith-probe" ;;
    known_ratio) part known_ratio 50 "$BUILD/bench/gpu_bench" known_ratio ;;
    null | spread | checks | all | baselines) part "$1" 2 "$BUILD/bench/gpu_bench" "$1" ;;
    null_python | null_python_small) limit=$((2 * limit)) part "$1" 70 "$BUILD/bench/gpu_bench" "$1" ;;
    python_eager) part python_eager 3 "$BUILD/bench/gpu_bench" python_eager ;;
    throughput) part throughput 12 "$BUILD/bench/gpu_bench" throughput ;;
    tricks) part tricks 6 "$BUILD/tests/hack_table" --tier plan --honest ;;
    rows) part rows 40 "$BUILD/bench/extension_bench" ;;
    extension) part extension 60 "$BUILD/tests/hack_table" --tier extension --honest ;;
    python) rm -f "$LOGS"/python-*.log; limit=$((2 * limit)) part python 90 bash -c python_tricks ;;
    degenerate) part degenerate 40 "$BUILD/warpsmith" validate datasets --device auto ;;
    datasets) part datasets 12 "$BUILD/warpsmith" validate datasets --measure --device auto ;;
    sanitizer) part sanitizer 1 bash -c sanitizer ;;
    wrong_gpu) part wrong_gpu 5 bash -c wrong_gpu ;;
    quickstart) part quickstart 40 bash -c quickstart ;;
    *) printf 'no part %s\n' "$1" >&2; exit 2 ;;
  esac
}

export -f wrong_gpu quickstart sanitizer python_tricks
export BUILD LOGS sanitizer
[ $# -gt 0 ] || set -- tests probe null spread checks all throughput python_eager baselines tricks rows extension python degenerate datasets sanitizer wrong_gpu quickstart
for name in "$@"; do run "$name"; done
printf '%d parts failed\n' "$failed"
[ "$failed" = 0 ]
