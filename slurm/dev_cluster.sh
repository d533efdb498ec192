#!/usr/bin/env bash
# A private Slurm cluster of five nodes on this machine, for development and tests; `dev_cluster.sh --help` says how.
# Real munged, slurmctld and slurmd (Slurm 22.05, as in Debian 12), all of it in one folder. Only processes that carry this
# cluster's mark in their environment, and its jobs, are ever signalled.
# shellcheck disable=SC2046,SC2086  # lists of process ids are there to be split
set -euo pipefail

settings=() port=0 accounting=false memory=auto options=""  # of `up`; the last four are kept in DIR/cluster
templates=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/dev_cluster
user=$(id -un)
nodes=(gpu-l40 gpu-h100 gpu-rtx3090 gpu-h20 cpu-0)
port_count=7                # slurmctld, five slurmd, slurmdbd
PATH=$PATH:/usr/sbin:/sbin  # where Debian puts daemons, and an ordinary user's PATH does not look

usage() {
  cat <<'TEXT'
usage: slurm/dev_cluster.sh COMMAND DIR [options]

  up DIR                starts the cluster; done when its five nodes are idle. The queue starts empty.
    --port N            first of seven TCP ports (default: free ones are found)
    --accounting        with slurmdbd and a mariadb of its own; DIR keeps the database from one `up` to the next
    --set KEY=VALUE     replaces that key's line of slurm.conf, or adds one (repeatable)
    --memory MODE       cgroup: the kernel kills a job over its memory (needs root and cgroup v1); poll: samples find it;
                        auto (default): cgroup where possible
  down DIR [--purge]    cancels all jobs and ends every process; --purge also removes DIR
  status DIR [--json]   what runs, and the state of the nodes; exit code 0 when all of it is up, else 1
  env DIR               the setting of clients, for: eval "$(slurm/dev_cluster.sh env DIR)"

For drills, on this cluster's processes only; exit code 1 where there is nothing to act on:
  kill-controller DIR   kill -9 of slurmctld;     start-controller DIR waits until it answers
  pause-controller DIR  SIGSTOP;                  resume-controller DIR
  kill-node DIR NODE    kill -9 of that slurmd;   start-node DIR NODE waits until slurmctld has it back
  stop-munge DIR        ends munged;              start-munge DIR

Nodes: gpu-l40, gpu-h100, gpu-rtx3090, gpu-h20 (two GPUs), cpu-0; partitions l40, h100, rtx3090, h20, cpu (default), all.
Exit codes: 0 done · 1 failed · 2 a mistake on the command line · 3 this machine lacks something.
TEXT
}

say() { printf 'dev_cluster: %s\n' "$*"; }
fail() { printf 'dev_cluster: %s\n' "$2" >&2; exit "$1"; }  # EXIT_CODE MESSAGE
none() { [ -z "$("$@")" ]; }                                # the command prints nothing

wait_for() {  # SECONDS COMMAND… : repeats it 20 times a second until it succeeds; false where it does not
  local end=$((SECONDS + $1))
  until "${@:2}"; do
    if ((SECONDS > end)); then return 1; fi
    sleep 0.05
  done
}

# --- this cluster's processes

# Starts a daemon with this cluster's environment and nothing of the caller's. Jobs do not get the mark.
spawn() {
  env -i PATH="$PATH" HOME="$dir" TMPDIR="$dir/run" LC_ALL=C.UTF-8 "$mark" SLURM_CONF="$dir/etc/slurm.conf" \
    MYSQL_UNIX_PORT="$dir/db/mysql.sock" "$@" </dev/null >>"$dir/log/start.log" 2>&1 9>&-  # 9: the lock of `up`
}

processes_with() { { grep -lsz "${@:2}" /proc/[0-9]*/"$1" || true; } | tr -dc '0-9\n'; }  # environ|cmdline GREP-ARGUMENTS…

pids_of() {  # the marked processes whose command line matches REGEX
  local pid line
  for pid in $(processes_with environ -xF "$mark"); do
    line=$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") || continue
    if [[ $line =~ $1 ]]; then echo "$pid"; fi
  done
}

pid_of() {  # munged | mariadbd | slurmdbd | slurmctld | NODE
  case $1 in
    gpu-* | cpu-*) pids_of "(^|/)slurmd .*-N $1 " ;;
    *) pids_of "(^|/)$1 " ;;
  esac
}

# Steps and what they started. slurmstepd writes its title over its environment: its folder, that of slurmd's log, tells
# whose it is. slurmd gives jobs the daemons' SLURM_CONF, and only a job has a task. cgroups also know those that cleared it.
step_pids() {
  local pid
  for pid in $(processes_with cmdline '^slurmstepd: '); do
    if [[ $(readlink "/proc/$pid/cwd") = "$dir/log"* ]]; then echo "$pid"; fi
  done
  for pid in $(processes_with environ -xF "SLURM_CONF=$dir/etc/slurm.conf"); do
    if grep -qsz '^SLURM_TASK_PID=' "/proc/$pid/environ"; then echo "$pid"; fi
  done
  if [ "$memory" = cgroup ]; then find $(cgroup_folders) -name cgroup.procs -exec cat {} + 2>/dev/null || true; fi
}

signal() {  # SIGNAL DAEMON
  if none pid_of "$2"; then fail 1 "no $2 of $dir runs"; fi
  kill -s "$1" $(pid_of "$2")
}

end_all() {  # SIGNAL COMMAND… : ends the processes that the command prints; by KILL what is still there after 4 s
  if none "${@:2}"; then return; fi
  kill -s "$1" $("${@:2}") 2>/dev/null || true
  wait_for 4 none "${@:2}" || kill -s KILL $("${@:2}") 2>/dev/null || true
  wait_for 4 none "${@:2}" || say "these do not end: $("${@:2}" | xargs)"
}

# --- asking the cluster

client() { SLURM_CONF=$dir/client/slurm.conf timeout --foreground 3 "$@" 2>/dev/null; }  # --foreground: Ctrl-C reaches it
answers() { client sinfo -h >/dev/null; }
list_clusters() { clusters=$(client sacctmgr -n show cluster); }
all_idle() { [ "$(client sinfo -h -N -p all -o %T | grep -cx idle)" = "${#nodes[@]}" ]; }
node_serves() {  # NODE SINCE : it has registered since that time
  [[ $(client sinfo -h -N -p all -n "$1" -o %T) =~ ^(idle|mixed|allocated|completing)$ && ! $(client scontrol show node "$1" |
    sed -n 's/.*SlurmdStartTime=//p') < $2 ]]
}

daemons() { printf '%s\n' munged $([ "$accounting" = false ] || echo mariadbd slurmdbd) slurmctld "${nodes[@]}"; }
ask_state() {  # sets now: up (every daemon runs and slurmctld answers), partial or down; and node_states
  local daemon
  now=down node_states=""
  if none pids_of .; then return; fi
  now=partial
  node_states=$(client sinfo -h -N -p all -o '%N %T') || return 0
  for daemon in $(daemons); do
    if none pid_of "$daemon"; then return; fi
  done
  now=up
}
describe() { echo "$dir, ports $port to $((port + port_count - 1)), memory by $memory, accounting $accounting"; }

# --- what a cluster needs

check_programs() {
  local pair missing wanted="munged:munge slurmctld:slurm-wlm slurmd:slurm-wlm sinfo:slurm-wlm"
  if [ "$accounting" = true ]; then
    wanted+=" slurmdbd:slurmdbd mariadbd:mariadb-server-core mariadb-install-db:mariadb-server-core my_print_defaults:mariadb-client-core"
  fi
  missing=$(for pair in $wanted; do command -v "${pair%:*}" >/dev/null || echo "${pair#*:}"; done | sort -u | xargs)
  [ -z "$missing" ] || fail 3 "missing Debian packages: $missing"
}

ports_are_free() {  # the cluster's ports from $port on; a socket in any state but TIME_WAIT (06) counts
  ! cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '$4 != "06" { n = split($2, a, ":"); print a[n] }' |
    grep -qxf <(printf '%04X\n' $(seq "$port" $((port + port_count - 1))))
}
choose_port() {
  local try
  if [ "$port" != 0 ]; then ports_are_free || fail 2 "one of the ports from $port on is in use"; return; fi
  for try in {0..999}; do  # below the ports that the kernel hands out; DIR decides where clusters that start together look
    port=$((21000 + 10 * (($(cksum <<<"$dir" | cut -d' ' -f1) + try) % 1000)))
    if ports_are_free; then return; fi
  done
  fail 3 "no $port_count free TCP ports in a row from 21000 to 31000"
}

# A group of this cluster's own in each hierarchy that Slurm uses: all of them, or none.
cgroup_folders() { printf '/sys/fs/cgroup/%s/warpsmith-dev-%s\n' freezer "$port" memory "$port"; }
make_cgroups() {
  local folder
  for folder in $(cgroup_folders); do
    # Without `tasks` it is an ordinary folder: that hierarchy is not mounted.
    if ! mkdir -p "$folder" 2>/dev/null || [ ! -e "$folder/tasks" ]; then remove_cgroups; return 1; fi
    ln -s "$folder" "$dir/cgroup/$(basename "${folder%/*}")"
  done
}
remove_cgroups() {
  find $(cgroup_folders) -depth -type d -exec rmdir {} \; 2>/dev/null || true
  none ls -d $(cgroup_folders) 2>/dev/null
}

write_configuration() {
  local host keep=$memory n name setting key
  host=$(uname -n)
  if [ "$accounting" = true ]; then keep+="|accounting"; fi
  local edits=(-e '/^#/d' -e "s/^@($keep) //" -e '/^@/d' -e "s#@DIR@#$dir#g; s#@USER@#$user#g; s#@HOST@#${host%%.*}#g")
  for ((n = 0; n < port_count; n++)); do edits+=(-e "s#@PORT$n@#$((port + n))#g"); done
  for name in slurm.conf gres.conf cgroup.conf slurmdbd.conf; do
    (umask 077 && sed -E "${edits[@]}" "$templates/$name.in" >"$dir/etc/$name")
  done
  for setting in "${settings[@]}"; do
    key=${setting%%=*}
    [[ $key =~ ^(NodeName|PartitionName)$ ]] || sed -i "/^$key=/Id" "$dir/etc/slurm.conf"
    printf '%s\n' "$setting" >>"$dir/etc/slurm.conf"
  done
  chmod 644 "$dir/etc/slurm.conf"  # clients of other users read it
  # With the daemons' 10 s each call of a client takes 9 s while slurmctld is away.
  sed 's/^MessageTimeout=.*/MessageTimeout=3/I' "$dir/etc/slurm.conf" >"$dir/client/slurm.conf"
  for name in l40-0 h100-0 rtx3090-0 h20-0 h20-1; do  # see gres.conf.in
    mknod -m 666 "$dir/dev/$name" c 1 3 2>/dev/null || : >"$dir/dev/$name"
  done
}

# --- starting and stopping

start_munge() {
  [ -s "$dir/etc/munge.key" ] || (umask 077 && head -c 1024 /dev/urandom >"$dir/etc/munge.key")
  # --force: munged warns, and does not refuse, where a folder above DIR is closed to others.
  spawn munged --force --key-file="$dir/etc/munge.key" --socket="$dir/run/munge.sock" --pid-file="$dir/run/munged.pid" \
    --log-file="$dir/log/munged.log" --seed-file="$dir/run/munge.seed"
}

start_accounting() {
  (umask 077 && mkdir -p "$dir/db")
  # No fsync and small files: up in 3 s, not in 10. The lock timeout is the one that slurmdbd asks for.
  local database=(--no-defaults --user="$user" --datadir="$dir/db/data" --debug-no-sync --innodb-flush-method=nosync
    --innodb-buffer-pool-size=64M --innodb-log-file-size=16M --innodb-lock-wait-timeout=900)
  if [ ! -d "$dir/db/data/mysql" ]; then
    spawn mariadb-install-db "${database[@]}" --auth-root-authentication-method=normal --skip-test-db
  fi
  spawn setsid --fork mariadbd "${database[@]}" --socket="$dir/db/mysql.sock" --pid-file="$dir/run/mariadbd.pid" \
    --log-error="$dir/log/mariadbd.log" --skip-networking
  wait_for 20 test -S "$dir/db/mysql.sock"
  spawn slurmdbd
  wait_for 20 list_clusters
  if [ -z "$clusters" ]; then  # and an account of this user, so that jobs run also where limits are enforced
    printf 'add %s\n' 'cluster dev' 'account dev' "user $user account=dev" |
      SLURM_CONF=$dir/client/slurm.conf timeout --foreground 30 sacctmgr -i >>"$dir/log/start.log"
  fi
}

start_controller() { spawn slurmctld -f "$dir/etc/slurm.conf"; }
start_node() { mkdir -p "$dir/spool/$1" && spawn slurmd -f "$dir/etc/slurm.conf" -N "$1"; }

start() {  # OPTIONS
  local node
  rm -rf "${dir:?}"/{etc,client,run,state,spool,log,dev,cgroup}
  mkdir "$dir"/{etc,client,run,state,spool,log,dev,cgroup}
  choose_port
  if [ "$memory" != poll ]; then
    if make_cgroups; then memory=cgroup
    elif [ "$memory" = cgroup ]; then fail 3 "--memory cgroup needs root, and cgroup v1 with its freezer and memory hierarchies"
    else memory=poll; fi
  fi
  printf '%s=%q\n' port "$port" accounting "$accounting" memory "$memory" options "$1" >"$dir/cluster"
  trap explain EXIT
  trap 'exit 130' INT TERM
  write_configuration
  start_munge
  if [ "$accounting" = true ]; then start_accounting; fi
  start_controller
  for node in "${nodes[@]}"; do start_node "$node"; done
  wait_for 20 all_idle
  trap - EXIT INT TERM
}

explain() {  # why a start did not succeed; leaves nothing half up
  set +e
  trap - EXIT INT TERM
  printf 'dev_cluster: the cluster did not come up; the ends of its logs:\n' >&2
  tail -n 4 "$dir"/log/*.log >&2
  client sinfo -N -p all -o '%N %T %E' >&2
  take_down >&2
  exit 1
}

cancel_jobs() {  # gives them their SIGTERM, and accounting their ends
  local job_state
  if none pid_of slurmctld || ! answers; then return; fi
  for job_state in PENDING RUNNING SUSPENDED; do client scancel --state="$job_state" || true; done
  wait_for 2 none client squeue -h || true
}

take_down() {
  kill -s CONT $(pids_of .) 2>/dev/null || true
  cancel_jobs
  end_all TERM pid_of slurmctld
  end_all KILL pids_of '(^|/)slurmd '  # it keeps nothing, and may wait seconds for its steps
  end_all KILL step_pids
  end_all TERM pid_of slurmdbd
  end_all TERM pid_of mariadbd
  end_all TERM pids_of .
  wait_for 2 remove_cgroups || say "left behind: $(cgroup_folders | xargs)"
  rm -rf "$dir"/run/* "$dir/db/mysql.sock" "$dir/cgroup"
}

# --- commands

load() {
  port=0 accounting=false memory=auto options=""
  # shellcheck source=/dev/null
  . "$dir/cluster"
}
take() {  # DIR, so that one `up` or `down` at a time works in it
  mkdir -p "$dir"
  exec 9>"$dir/lock"
  flock -w 120 9 || fail 1 "another up or down of $dir goes on"
  if [ ! -e "$dir/cluster" ] && [ "$(ls -A "$dir")" != lock ]; then
    rm "$dir/lock"
    fail 2 "$dir holds other things; want an empty or a new folder"
  fi
  touch "$dir/cluster"
}
elapsed_ms() { echo $((($(date +%s%N) - began) / 1000000)); }

up() {
  local given="$*" now node_states
  while [ $# -gt 0 ]; do
    if [ "$1" = --accounting ]; then accounting=true; shift; continue; fi
    case $1 in
      --port) [[ ${2:-} =~ ^[1-9][0-9]{3,4}$ && $2 -lt 65530 ]] || fail 2 "--port wants 1000 to 65529"; port=$2 ;;
      --memory) [[ ${2:-} =~ ^(auto|cgroup|poll)$ ]] || fail 2 "--memory wants auto, cgroup or poll"; memory=$2 ;;
      --set) [[ ${2:-} =~ ^[A-Za-z]+=[[:print:]]+$ ]] || fail 2 "--set wants KEY=VALUE"; settings+=("$2") ;;
      *) fail 2 "up: '$1' is unknown (see --help)" ;;
    esac
    shift 2
  done
  check_programs
  ((${#dir} <= 56)) || fail 2 "$dir: over 56 characters, and the sockets in it would have no valid address"
  umask 022
  take
  now=$(load && ask_state && echo "$now")
  if [ "$now" = up ]; then
    load
    [ -z "$given" ] || [ "$given" = "$options" ] || fail 2 "$dir is up with other options ('$options'); take it down first"
    say "is up: $(describe)"
    return
  fi
  if [ "$now" = partial ]; then (load && take_down); fi
  start "$given"
  say "up after $(elapsed_ms) ms: $(describe)"
}

down() {
  [[ ${1:-} =~ ^(--purge)?$ ]] || fail 2 "down: '$1' is unknown (see --help)"
  if [ ! -e "$dir/cluster" ] && none pids_of .; then say "no cluster in $dir"; return; fi
  take
  load
  take_down
  if [ "${1:-}" = --purge ]; then rm -rf "$dir"; fi
  say "down after $(elapsed_ms) ms: $dir"
}

status() {
  local now=down node_states="" daemon pid is text="" daemons_json="" nodes_json=""
  if [ -e "$dir/cluster" ]; then load; ask_state; fi
  for daemon in $(daemons); do
    pid=$(pid_of "$daemon" | head -n 1) is=""
    daemons_json+=", \"$daemon\": ${pid:-null}"
    if [[ $daemon =~ ^[gc]pu- ]]; then
      is=$(sed -n "s/^$daemon //p" <<<"$node_states")
      is=${is:-unknown}
      nodes_json+=", \"$daemon\": \"$is\""
    fi
    text+=$(printf '\n  %-12s %-12s %s' "$daemon" "${pid:+pid $pid}" "$is")
  done
  if [ "${1:-}" = --json ]; then
    printf '{"dir": "%s", "state": "%s", "port": %d, "accounting": %s, "memory": "%s", "slurm_conf": "%s", ' \
      "$dir" "$now" "$port" "$accounting" "$memory" "$dir/client/slurm.conf"
    printf '"daemons": {%s}, "nodes": {%s}}\n' "${daemons_json:2}" "${nodes_json:2}"
  else
    printf '%s: %s%s\n' "$now" "$(describe)" "$text"
  fi
  [ "$now" = up ]
}

restart() {  # DAEMON CHECK… : starts it where it does not run, and waits until the check holds
  if none pid_of "$1"; then
    case $1 in munged) start_munge ;; slurmctld) start_controller ;; *) start_node "$1" ;; esac
  fi
  wait_for 20 "${@:2}" || { tail -n 4 "$dir"/log/*.log >&2; fail 1 "$1 did not come back"; }
}

case ${1:---help} in -h | --help | help) usage; exit ;; esac
[ -n "${2:-}" ] || fail 2 "want a COMMAND and a DIR (see --help)"
command=$1 dir=$(realpath -m "$2")
shift 2
[[ $dir =~ ^/[A-Za-z0-9._/-]+$ ]] || fail 2 "$dir: Slurm's files cannot hold such a path (want letters, digits and ._-)"
mark=WARPSMITH_DEV_CLUSTER=$dir
began=$(date +%s%N)
case $command in up | down | status) "$command" "$@"; exit ;; esac

[ -e "$dir/cluster" ] || fail 1 "no cluster in $dir"
load
node=${1:-}
[[ $command != *-node || " ${nodes[*]} " = *" $node "* ]] || fail 2 "$command: '$node' is none of ${nodes[*]}"
case $command in
  env) echo "export SLURM_CONF=$dir/client/slurm.conf" ;;
  kill-controller) signal KILL slurmctld ;;
  pause-controller) signal STOP slurmctld ;;
  resume-controller) signal CONT slurmctld ;;
  start-controller) restart slurmctld answers ;;
  kill-node) signal KILL "$node" ;;
  start-node) restart "$node" node_serves "$node" "$(none pid_of "$node" && date +%FT%T)" ;;
  stop-munge) signal TERM munged; wait_for 5 none pid_of munged ;;
  start-munge) restart munged test -S "$dir/run/munge.sock" ;;
  *) fail 2 "'$command' is no command (see --help)" ;;
esac
