#!/usr/bin/env bash
# dev_cluster_test.sh DEV_CLUSTER.SH : two clusters side by side, one of them with accounting. Exit code 77 (skipped) where
# Slurm is not installed; the output names the packages.
set -euo pipefail

cluster=$1
scratch=$(mktemp -d /tmp/warpsmith-slurm.XXXXXX)  # short: sockets lie in it
plain=$scratch/plain accounted=$scratch/accounted
partitions=(l40 h100 rtx3090 h20 cpu)

end() {
  local code=$?
  for dir in "$plain" "$accounted"; do
    if [ "$code" != 0 ] && [ "$code" != 77 ]; then tail -n 5 "$dir"/log/{start,slurmctld,slurmd.cpu-0}.log 2>/dev/null || true; fi
    "$cluster" down "$dir" >/dev/null || true
  done
  rm -rf "$scratch"
}
trap end EXIT

check() {  # TEXT COMMAND…
  "${@:2}" || { echo "FAILED: $1 ($(printf '%q ' "${@:2}"))"; exit 1; }
  echo "ok: $1 ($SECONDS s)"
}
within() {  # SECONDS COMMAND… : it becomes true
  local end=$((SECONDS + $1))
  until "${@:2}"; do ((SECONDS <= end)) || return 1; sleep 0.2; done
}
exits() { local code=0; "${@:2}" >/dev/null 2>&1 || code=$?; [ "$code" = "$1" ]; }  # CODE COMMAND…
on() { (eval "$("$cluster" env "$1")" && cd "$scratch" && timeout 30 "${@:2}"); }     # DIR COMMAND…
is() { [ "$("${@:2}")" = "$1" ]; }                                                   # TEXT COMMAND…
contains() { grep -q -- "$1" <<<"$("${@:2}")"; }                                     # REGEX COMMAND…
nothing() { [ -z "$("$@")" ]; }

# Names that a cluster would have in the system's own folders.
traces() {
  find /run /var/run/ /var/lib /var/log /var/spool /etc /dev/shm -maxdepth 2 2>/dev/null | grep -iE 'slurm|munge|mysql|maria' | sort || true
  find /sys/fs/cgroup -maxdepth 2 -name "warpsmith-dev-$1" 2>/dev/null
}
processes() {  # that name this folder, work in it or write to it; this grep is none of them
  grep -ls -- "[/]${scratch#/}/" /proc/[0-9]*/environ /proc/[0-9]*/cmdline || true
  find /proc/[0-9]*/{cwd,fd} -maxdepth 1 -lname "$scratch/*" -printf '%p %l\n' 2>/dev/null || true
}

runs_jobs() {  # DIR : a job by srun and one by sbatch in each partition, all at once
  local partition jobs=()
  for partition in "${partitions[@]}"; do
    on "$1" srun --quiet -p "$partition" -J "srun-$partition" printenv SLURMD_NODENAME >"$1/$partition.srun" & jobs+=($!)
    on "$1" sbatch --quiet --wait -p "$partition" -o "$1/$partition.sbatch" --wrap 'printenv SLURMD_NODENAME' & jobs+=($!)
  done
  for job in "${jobs[@]}"; do wait "$job" || return 1; done
  for partition in "${partitions[@]}"; do
    cmp "$1/$partition.srun" "$1/$partition.sbatch" && grep -q -- "-0\?$partition\|^cpu-0" "$1/$partition.srun" || return 1
  done
}

traces_before=$(traces none)
code=0
"$cluster" up "$plain" || code=$?
if [ "$code" = 0 ]; then "$cluster" up "$accounted" --accounting --set MaxArraySize=11 || code=$?; fi
if [ "$code" = 3 ]; then echo "SKIPPED: Slurm is not installed (see above)"; exit 77; fi
check "two clusters are up" [ "$code" = 0 ]

check "one that cannot come up fails" exits 1 "$cluster" up "$scratch/broken" --set SelectType=foo
check "and leaves nothing running" contains '^down' "$cluster" status "$scratch/broken"
check "up again says so" contains 'is up' "$cluster" up "$plain"
check "up with other options is refused" exits 2 "$cluster" up "$plain" --port 30000
check "status" "$cluster" status "$plain"
if command -v python3 >/dev/null; then
  check "status as JSON" is "up 5" python3 -c '
import json, sys
s = json.loads(sys.argv[1])
print(s["state"], sum(state == "idle" for state in s["nodes"].values()))' "$("$cluster" status "$accounted" --json)"
fi
check "--set replaces a setting" contains 'MaxArraySize *= 11$' on "$accounted" scontrol show config

runs_jobs "$plain" & first=$!
check "jobs on each partition, with accounting" runs_jobs "$accounted"
check "jobs on each partition, at the same time" wait "$first"

check "GRES are visible" contains '^h20 gpu:h20:2' on "$plain" sinfo -h -o '%P %G'
check "a job gets both GPUs" contains 'gres/gpu:h20=2\|gpu:h20:2' on "$plain" srun --quiet -p h20 --gres=gpu:h20:2 scontrol show job
check "three GPUs are refused" exits 1 on "$plain" srun -p h20 --gres=gpu:h20:3 true
check "accounting knows the jobs" within 10 is 10 on "$accounted" bash -c 'sacct -X -n -o state | grep -c COMPLETED'

"$cluster" kill-node "$plain" cpu-0
check "a node less is no longer up" exits 1 "$cluster" status "$plain"
check "there is nothing left to kill" exits 1 "$cluster" kill-node "$plain" cpu-0
check "the other cluster has its node" "$cluster" status "$accounted"
check "start-node" "$cluster" start-node "$plain" cpu-0
check "the node works" is cpu-0 on "$plain" srun --quiet -p cpu printenv SLURMD_NODENAME

"$cluster" pause-controller "$plain"
check "a paused controller does not answer" exits 1 "$cluster" status "$plain"
"$cluster" resume-controller "$plain"
"$cluster" kill-controller "$plain"
check "a client gives up early" exits 1 on "$plain" timeout 4 squeue
check "start-controller" "$cluster" start-controller "$plain"
"$cluster" stop-munge "$plain"
check "no submission without munge" exits 1 on "$plain" sbatch --wrap true
check "start-munge" "$cluster" start-munge "$plain"
check "everything is back" within 10 exits 0 "$cluster" status "$plain"

# A job that will not go, and a child that has left it.
on "$plain" sbatch --quiet -o /dev/null --wrap 'trap "" TERM; (setsid sleep 300 &); sleep 301; sleep 302'
check "a job runs" within 10 contains RUNNING on "$plain" squeue -h -o %T
port=$(sed -n 's/^port=//p' "$plain/cluster")
check "down" "$cluster" down "$plain"
check "down again" exits 0 "$cluster" down "$plain"
check "the other one is up" "$cluster" status "$accounted"
check "down --purge" "$cluster" down "$accounted" --purge
check "the folder is gone" [ ! -e "$accounted" ]
check "no process is left" within 2 nothing processes
check "no file is left elsewhere" is "$traces_before" traces "$port"
