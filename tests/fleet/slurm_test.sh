#!/usr/bin/env bash
# Workers that Slurm starts by the script of `fleet launch slurm`, on a cluster of one node that this
# test starts: a job of more importance takes the node from a worker in the middle of its work; what
# it had is given back, the array comes again, and nothing is missing at the end.
# slurm_test.sh PROGRAM
source "$(dirname "$0")/../e2e/fleet_lib.sh"
for tool in slurmctld slurmd sbatch squeue scancel; do
  command -v "$tool" >/dev/null || PATH=$PATH:/usr/sbin
  if ! command -v "$tool" >/dev/null; then
    echo "skipped: there is no $tool (apt install slurm-wlm)"
    exit 77
  fi
done
PATH=$(dirname "$program"):$PATH
daemons=()
leave_slurm() {
  scancel --user "$(id -un)" 2>/dev/null
  within 20 no_jobs
  for pid in "${daemons[@]}"; do kill -TERM "$pid" 2>/dev/null; done
  wait "${daemons[@]}" 2>/dev/null
  leave
}
no_jobs() { [ -z "$(squeue -h 2>/dev/null)" ]; }

# Its ports, daemons, folders and log files are its own. auth/none: whoever reaches 127.0.0.1 here is believed.
mkdir "$work/state" "$work/spool" "$work/logs"
read -r controller node < <("$python" -c "
import socket
s = [socket.socket() for _ in range(2)]
for one in s: one.bind(('127.0.0.1', 0))
print(*(one.getsockname()[1] for one in s))")
export SLURM_CONF=$work/slurm.conf
cat >"$SLURM_CONF" <<CONF
ClusterName=tilewright_test
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$controller
SlurmdPort=$node
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/none
CredType=cred/none
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=requeue_delay=1,sched_interval=2,bf_interval=1,sched_min_interval=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=20
ReturnToService=2
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 State=UP
PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF State=UP
CONF
trap leave_slurm EXIT
slurmctld -D -c >"$work/logs/slurmctld" 2>&1 &
daemons+=($!)
slurmd -D -c >"$work/logs/slurmd" 2>&1 &
daemons+=($!)
node_is_up() { sinfo -h -o %T 2>/dev/null | grep -q idle; }
holds "a cluster of one node" within 60 node_is_up || cat "$work/logs"/*

url=$("$program" -q fleet init --private pool)
export TILEWRIGHT_STORE=$url
"$program" -q fleet launch slurm --device cpu >array.sh
holds "the script is one that sbatch takes" sbatch --test-only array.sh
"$program" -q zoo resnet18 --size 64 -o net.onnx || exit 1
sbatch --parsable --output "$work/logs/worker-%a" array.sh >array.id
holds "a worker of the array" within 30 has free 1 || exit 1
"$program" --json -q tune net.onnx --worker cpu --threads 1 --trials 160 --for 300s -o net.twm >tuned.json 2>tune.log &
tune=$!
results() { sql "SELECT count(*) FROM fleet.results"; }
at_work() {
  [ "$(results)" -ge 16 ] && [ "$(sql "SELECT count(*) FROM fleet.devices WHERE token IS NOT NULL")" -gt 0 ]
}
holds "measures" within 60 at_work || exit 1
sbatch --parsable -p high --exclusive --output /dev/null --wrap 'sleep 4' >urgent.id
urgent_runs() { squeue -h -j "$(cat urgent.id)" -o %T | grep -q RUNNING; }
holds "a job of more importance takes its node" within 60 urgent_runs
holds "in the middle of its work" kill -0 "$tune"
before=$(results)
# Of a worker that was killed the device would be leased until its 30 s are over.
holds "the worker gave back what it had" has free 0
holds "and says so" grep -q '^left: .* 0 could not be posted' "$work"/logs/worker*
left_to_slurm() { squeue -h -r -j "$(cat array.id)" -o %T | grep -c .; }
holds "all eight of the array are still to run" [ "$(left_to_slurm)" -eq 8 ]
holds "meanwhile nothing is measured" [ "$(results)" -eq "$before" ]
wait "$tune"
code=$?
cp tune.log "$log"
holds "the tuning ends well" [ $code -eq 0 ]
holds "by another worker of the array" [ "$(cat "$work"/logs/worker* | grep -c 'takes jobs of pool')" -ge 2 ]
holds "with all results, and none spoilt by the end of a worker" "$python" -c "
import json, collections
t = json.load(open('tuned.json'))
outcomes = sum((collections.Counter(k.get('outcomes') or {}) for k in t['tasks']), collections.Counter())
assert t['trials'] == 160 and sum(outcomes.values()) == 160, (t['trials'], outcomes)
assert not outcomes.keys() & {'crash', 'lost', 'oom', 'timeout'}, outcomes"
finish
