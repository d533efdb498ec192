#!/usr/bin/env bash
# doctor_test.sh WARPSMITH DEV_CLUSTER.SH SITE.YAML : `warpsmith doctor` against a cluster, well and broken.
# Exit code 77 (skipped) where Slurm is not installed; the output names the packages.
set -euo pipefail

warpsmith=$1 cluster=$2 site=$3
scratch=$(mktemp -d /tmp/warpsmith-doctor.XXXXXX)  # short: sockets lie in it
lab=$scratch/lab
out=$scratch/out

end() {
  local code=$?
  if [ "$code" != 0 ] && [ "$code" != 77 ]; then tail -n 60 "$out" 2>/dev/null || true; fi
  "$cluster" down "$lab" >/dev/null || true
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
doctor() {  # CODE OPTION… : its exit code; what it says goes to $out
  local code=0
  timeout 90 "$warpsmith" doctor "${@:2}" >"$out" 2>"$scratch/err" || code=$?
  [ "$code" = "$1" ] || { cat "$scratch/err"; return 1; }
}
says() { grep -qE -- "$1" "$out"; }                        # REGEX
count() { grep -cE -- "$1" "$out" || true; }                # REGEX
lacks() { [ "$(grep '^LACK' "$out" | cut -c6-35 | sed 's/ *$//' | paste -sd,)" = "$1" ]; }  # NAME,NAME
queue_is() { [ "$(squeue -h -o %j | sort | paste -sd,)" = "$1" ]; }
nothing_left() { ! squeue -h -o %j | grep -q warpsmith && [ -z "$(ls -A "$scratch"/results 2>/dev/null)" ]; }

code=0
"$cluster" up "$lab" || code=$?
if [ "$code" = 3 ]; then echo "SKIPPED: Slurm is not installed (see above)"; exit 77; fi
check "the cluster is up" [ "$code" = 0 ]
cd "$scratch"
slurm_conf=$(eval "$("$cluster" env "$lab")"; echo "$SLURM_CONF")
export SLURM_CONF=$slurm_conf WARPSMITH_RESULTS=$scratch/results

# --- all is well

check "the development site is as its file says" doctor 0 --site "$site"
check "it names the cluster" says '^ok   cluster  *dev, Slurm [0-9]'
check "each place was tried" [ "$(count 'shared folder .*reads and writes')" = 5 ]
check "programs start there" [ "$(count 'programs .*-shard.* start there')" = 5 ]
check "the controller's node may submit" says '^ok   cpu, controller submits .*cpu-0 may submit'
check "no job and no file is left" nothing_left
check "a folder that was not there is gone" [ ! -e "$scratch/results" ]
check "without jobs" doctor 0 --site "$site" --wait 0
check "… it still asks Slurm" [ "$(count 'Slurm would take the job, and start it now')" = 6 ]
check "… and nothing else" [ "$(count 'shared folder')" = 0 ]
check "as JSON" doctor 0 --site "$site" --wait 0 --json
check "… which holds all facts" grep -q '"name":"gpu H20 gres","ok":true,"value":"gpu:h20: 2 in all' "$out"

# --- a first site file

check "a site file is written" doctor 0 --discover --name lab --output lab.yaml
check "… that is good" "$warpsmith" validate lab.yaml
types=$(sed -n '/^gpus:/,/^$/s/^  \([A-Z0-9]*\):$/\1/p' lab.yaml | xargs)
check "… with the types of the cluster" [ "$types" = "H100 H20 L40 RTX3090" ]
cp lab.yaml before.yaml
check "a site is named as its file" doctor 0 --discover --output mine.yaml
check "… mine" grep -qx 'name: mine' mine.yaml
check "it is not written over" doctor 2 --discover --output lab.yaml
check "… not at all" cmp lab.yaml before.yaml
check "on stdout" doctor 0 --discover --name lab
check "… it is the same" cmp "$out" lab.yaml
check "nodes without a GPU are found out" doctor 3 --site lab.yaml
check "… as that alone" lacks "gpu H100 device,gpu H20 device,gpu L40 device,gpu RTX3090 device"
sed 's/^defaults:/defaults:\n  twin: true/' before.yaml >lab.yaml
check "with the twin all is well" doctor 0 --site lab.yaml

# --- mistakes in a site file

cat >bad.yaml <<'YAML'
schema: warpsmith.site/1
name: bad
defaults: {twin: true}
cpu: {partition: cpuu}
gpus:
  L40: {partition: l40, gres: "gpu:L40"}
  H100: {partition: h100, max_time: 2d}
  RTX3090: {partition: rtx3090, constraint: tea}
controller: {partition: cpu, cpus: 99}
YAML
check "mistakes in a site file" doctor 3 --site bad.yaml --wait 60
check "… partition" says 'did you mean `cpu`'
check "… GRES" says 'did you mean `gpu:l40`'
check "… time" says 'write max_time: 1d'
check "… feature" says 'tea: 0 usable nodes'
check "… type that it does not name" says '^ok   not in the site .*gpu:h20, 2 in all; partitions'
check "… and Slurm says the same" [ "$(count '^LACK .* request .*Slurm says')" = 5 ]
check "no job was submitted for these" nothing_left

# --- what surrounds a program

sed -e 's/L40: {/L40: {setup: [echo tea, exit 7], /' -e 's/H100: {/H100: {container: [no-such-program], /' \
  -e 's/H20: {/H20: {scratch: \/proc\/nowhere, modules: [tea], /' "$site" >around.yaml
check "what stands around a program" doctor 3 --site around.yaml
check "… setup" says 'LACK gpu L40 programs .*exit code 7.*tea'
check "… container" says 'LACK gpu H100 programs .*no-such-program'
check "… scratch and modules" [ "$(count 'LACK gpu H20 (scratch|modules)')" = 2 ]
if unshare -m true 2>/dev/null; then
  mkdir hidden
  check "a folder that the nodes do not see" unshare -m bash -c 'mount -t tmpfs none hidden &&
    "$0" --results hidden/results doctor --site "$1" --wait 60 >"$2"; [ $? = 3 ]' "$warpsmith" "$site" "$out"
  check "… on any node" [ "$(count '^LACK .*shared folder .* did not write in')" = 5 ]
else
  echo "not tried: a folder that the nodes do not see (no right to mount)"
fi

# --- a cluster that is not well

scontrol update partitionname=h20 state=down
check "a partition that is down" doctor 3 --site "$site" --wait 60
check "… is all" lacks "gpu H20 partition,gpu H20 job"
scontrol update partitionname=h20 state=up
srun --quiet -J tea -p l40 --gres=gpu:1 sleep 100 &
within 10 queue_is tea
check "a GPU that is taken is no lack" doctor 0 --site "$site" --wait 15
check "… and its reason is told" says 'gpu L40 job .*PENDING \(Resources\) after 15 s'
check "the job that waited is gone" queue_is tea

timeout 60 "$warpsmith" doctor --site "$site" --wait 50 >/dev/null 2>&1 & interrupted=$!
check "a probe waits" within 10 eval 'squeue -h -t PD -o %j | grep -q ^warpsmith-doctor'
code=0
kill -TERM "$(pgrep -P "$interrupted")" && wait "$interrupted" || code=$?
check "interrupted" [ "$code" = 130 ]
check "… it leaves nothing" nothing_left
scancel -n tea

mkdir programs
cp "$(dirname "$warpsmith")"/warpsmith{,-shard,-guard} programs/
warpsmith=$scratch/programs/warpsmith
check "without the module" doctor 3 --site "$site"
check "… it says so" says '^LACK slurm .*the Slurm module .* is not there'
echo tea >programs/warpsmith-slurm.so
check "a module that is none" doctor 3 --site "$site"
check "… says so" says '^LACK slurm .*cannot be loaded'
warpsmith=$1
export SLURM_CONF=/nowhere
check "without a configuration" doctor 3 --site "$site"
export SLURM_CONF=$slurm_conf
check "… it says where it looked" says '^LACK slurm .*configuration .*/nowhere'
"$cluster" kill-controller "$lab"
since=$SECONDS
check "without slurmctld" doctor 3 --site "$site"
check "… it says so" says '^LACK cluster .*Unable to contact'
check "… soon" [ $((SECONDS - since)) -lt 20 ]
check "nothing is discovered then" doctor 3 --discover --output none.yaml
check "… or written" [ ! -e none.yaml ]
