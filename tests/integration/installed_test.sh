#!/bin/bash
# installed_test.sh BUILD SOURCE TORCH: installs into a fresh prefix and moves it, then has the installed programs work
# from there, down to the report of a small run. Source, build and torch's place at the build are hidden by mounts of
# its own; where those are not to be had it says so, and they stay in sight. TORCH is empty in a build without torch.
set -euo pipefail
fail() { echo "installed_test.sh: $*" >&2; exit 1; }
build=$1 source=$2 torch=$3

if [ -z "${INSIDE:-}" ]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  cmake --install "$build" --prefix "$scratch/first" > "$scratch/install.log" || fail "$(tail -5 "$scratch/install.log")"
  mv "$scratch/first" "$scratch/moved"
  cp "$0" "$scratch/test.sh"
  "$build/warpsmith" --version > "$scratch/version"
  own_mounts=()
  for how in "unshare -m" "unshare -rm"; do
    if $how mount -t tmpfs none "$scratch/moved" 2> "$scratch/mount.log"; then read -ra own_mounts <<< "$how"; break; fi
  done
  [ ${#own_mounts[@]} -gt 0 ] || echo "note: no mounts of its own, source and build stay in sight: $(cat "$scratch/mount.log")"
  INSIDE=$scratch HIDE=${#own_mounts[@]} "${own_mounts[@]}" bash "$scratch/test.sh" "$@"
  exit
fi

cd "$INSIDE"
prefix=$INSIDE/moved
export TORCH_ROOT=$torch WARPSMITH_CACHE=$INSIDE/cache
moved=
if [ "$HIDE" -gt 0 ]; then
  if [ -n "$torch" ]; then
    torch=$(realpath "$torch") environment=$(realpath "$torch/../../../..")
    if [ -e "$environment/pyvenv.cfg" ]; then  # one of its own, not the system's: it can be moved
      mkdir environment
      mount --rbind "$environment" environment
      TORCH_ROOT=$INSIDE/environment/${torch#"$environment"/}
      mount -t tmpfs none "$environment"
      moved=$INSIDE/environment
    fi
  fi
  for folder in "$build" "$source"; do mount -t tmpfs none "$folder"; done
  [ ! -e "$source/README.md" ] || fail "$source is not hidden"
fi
warpsmith=$prefix/bin/warpsmith programs=$prefix/libexec/warpsmith share=$prefix/share

cmp <("$warpsmith" --version) version || fail "--version differs"
for file in man/man1/warpsmith.1 bash-completion/completions/warpsmith zsh/vendor-completions/_warpsmith \
    fish/vendor_completions.d/warpsmith.fish warpsmith/sites/example.yaml doc/warpsmith/README.md; do
  [ -s "$share/$file" ] || fail "there is no $share/$file"
done
"$warpsmith" validate "$share/warpsmith/workflows/quickstart.yaml" || fail "the installed quickstart is no workflow"
"$warpsmith" validate "$share/warpsmith/sites/example.yaml"
"$warpsmith" plan "$share/warpsmith/workflows/quickstart.yaml" --site example > plan.log 2>&1 || true
! grep "there is no site" plan.log || fail "the installed sites are not found"
[ -n "$torch" ] || exit 0

# Without torch: words, and not the loader's.
for program in generate measure train; do
  code=0
  TORCH_ROOT=/nowhere "$programs/warpsmith-$program" 2> words.log || code=$?
  grep -q "there is no torch in /nowhere: set TORCH_ROOT" words.log || fail "warpsmith-$program: $(cat words.log)"
  [ $code = 127 ] || fail "warpsmith-$program ended with $code"
done
mkdir -p old/lib
touch old/lib/libtorch_cpu.so
echo "__version__ = '1.13.1+cpu'" > old/version.py
(TORCH_ROOT=$INSIDE/old "$programs/warpsmith-measure" 2> words.log) || true
grep -q "torch in $INSIDE/old is '1.13.1+cpu': set TORCH_ROOT" words.log || fail "another torch: $(cat words.log)"
if [ -n "$moved" ]; then
  (unset TORCH_ROOT; "$programs/warpsmith-measure" 2> words.log) || true
  grep -q "there is no torch in $torch" words.log || fail "warpsmith-measure: $(cat words.log)"
fi
TORCH_ROOT=/nowhere "$warpsmith" doctor > doctor.log || true
grep -q "LACK program warpsmith-train .*there is no torch in /nowhere" doctor.log || fail "doctor: $(cat doctor.log)"
"$warpsmith" doctor > doctor.log || true
! grep "LACK program" doctor.log || fail "doctor says that a program lacks something"
if [ -n "$moved" ] && [ -x "$programs/warpsmith-nvrtc" ] && [ -d "$TORCH_ROOT/../nvidia" ]; then
  grep -q "compiler NVRTC .* in $moved/" doctor.log || fail "NVRTC of TORCH_ROOT is not found: $(grep -A1 NVRTC doctor.log)"
fi

# One of the installed tasks, with two candidates.
task=datasets/square_row_sum
mkdir -p $task/candidates/{ok,compile_error}
cp "$share/warpsmith/$task/task.yaml" $task
for candidate in ok/warp_per_row compile_error/missing_semicolon; do
  cp "$share/warpsmith/$task/candidates/$candidate.cu" $task/candidates/$candidate.cu
done
cat > small.yaml <<END
schema: warpsmith.workflow/1
name: small
seed: 7
device: cpu
dataset: {folder: datasets, train: [square_row_sum]}
model: {layers: 1, width: 32, heads: 2, kv_heads: 1, hidden: 64, context: 640, vocabulary: 384}
prompt: {style: compact, exemplars: 1}
sample: {max_tokens: 16}
optimizer: {batch_tokens: 800, warmup_steps: 0}
measure: {target: 20%, budget: 100ms, buckets: 3, rounds_a_bucket: 2, check_seeds: 1}
resources: {cpus: 1, memory: 2GiB, time: 2m}
stages:
  - {name: collect, kind: collect, augment: {variants: 0}}
  - {name: sft, kind: sft, needs: collect, steps: 2}
  - {name: evaluate, kind: measure, needs: sft, samples: 1}
END
"$warpsmith" run small.yaml || fail "the run failed: $("$warpsmith" why collect 2>&1 | tail -20)"
[ -s results/small/report.html ] || fail "there is no report"
# On a busy machine a right candidate's times may scatter too much for a score.
"$warpsmith" export small --format csv > rows.csv
grep -Eq ',(ok|unstable),' rows.csv || fail "no candidate was right: $(head -5 rows.csv)"
