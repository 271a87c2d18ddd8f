#!/usr/bin/env bash
# A fleet on this machine: a private PostgreSQL, workers, models that run on them; and what users get
# who ask for what is not there.
# fleet.sh PROGRAM
source "$(dirname "$0")/fleet_lib.sh"

# member FILE PATH: a member of a JSON document, by a path of Python.
member() { "$python" -c "import json; print(json.load(open('$1'))$2)"; }

"$program" -q zoo lenet5 -o net.onnx || exit 1

exits 2 "no fleet yet" "there is no fleet yet" "fleet init --private" -- fleet status
exits 2 "a file is no fleet" "has no queue" -- fleet status --store sqlite:x.db
exits 10 "H1 nobody there" "error: " -- fleet status --store "postgresql:///x?host=$work/nowhere"
exits 2 "a password in an address" "password" -- fleet status --store "postgresql://me:secret@127.0.0.1/x"
holds "it is not shown" [ "$(grep -c secret "$log")" -eq 0 ]

exits 0 "a private server" "postgresql://" -- fleet init --private pool
exits 0 "again: it is there" "postgresql://" -- fleet init --private pool
exits 0 "later commands find it" "no devices" -- fleet status
exits 0 "server and schema are sound" sound -- fleet check
exits 4 "no worker was ever started" "no device of the fleet" "tilewright worker" -- run net.onnx --worker cpu
url=$("$program" -q fleet init --private pool)
exits 10 "H1 PostgreSQL without a fleet" "has no fleet" "fleet init" -- \
  fleet status --store "${url/:5432\/*\?/:5432/template1?}"

# Who may do what.
exits 4 "a login that PostgreSQL does not have" "has no login ann" "CREATE ROLE ann" -- fleet login ann
"$python" - "$url" <<'END'
import sys
import psycopg2
connection = psycopg2.connect(sys.argv[1])
connection.cursor().execute("CREATE ROLE ann LOGIN; CREATE ROLE wes LOGIN")
connection.commit()
END
exits 0 "a user" "the fleet knows ann" -- fleet login ann --kind user --weight 2 --max-ready 100 --blobs 1G
exits 0 "a worker" "the fleet knows wes" -- fleet login wes --kind worker
exits 0 "a pool" "there is a pool lab" -- fleet pool lab --max-time 5m
exits 0 "who submits" "ann may submit in lab, devices of class cpu:*" -- \
  fleet grant ann --pool lab --submit --class 'cpu:*'
exits 0 "who serves" "wes may serve in lab" -- fleet grant wes --pool lab --serve
exits 0 "and no longer" "wes may no longer serve" -- fleet grant wes --pool lab --serve --revoke
exits 2 "one of two" "takes one of --submit and --serve" -- fleet grant ann --pool lab
exits 4 "a pool that is not there" "no pool attic" "tilewright fleet pool" -- fleet grant ann --pool attic --submit
exits 2 "no weight" "--weight" -- fleet login ann --weight 0
exits 2 "another kind" "did you mean" -- fleet login ann --kind users
hers=${url/:\/\/*@/:\/\/ann@}
exits 0 "ann looks" "no devices" -- fleet status --store "$hers"
exits 2 "she owns nothing" "may not do this" "owner of the fleet" -- fleet pool mine --store "$hers"
exits 0 "she is switched off" "knows ann" -- fleet login ann --off
exits 2 "and told so" "switched off" -- fleet status --store "$hers"
exits 0 "and on again" "knows ann" -- fleet login ann --on
exits 0 "she looks again" "no devices" -- fleet status --store "$hers"

worker --device cpu --tag desk --cache 1G
holds "H8 a worker offers its devices" within 60 has free 1
exits 0 "the status names it" "/cpu" desk free -- fleet status
exits 4 "nothing matches: the nearest" "did you mean 'tag=desk'?" -- run net.onnx --worker tag=desc
exits 2 "an unknown word in a SPEC" "name=DEVICE and tag=TAG" -- run net.onnx --worker tga=desk
exits 2 "no trace from there" "--trace is for this machine" -- run net.onnx --worker cpu --trace t.json

exits 0 "a model runs there" "on " "opened in" -- run net.onnx --worker cpu --seed 3 --output there.npy
exits 0 "and here" "" -- run net.onnx --seed 3 --output here.npy
holds "with the same bits" cmp here.npy there.npy
exits 0 "a package runs there" "" -- compile net.onnx -o net.twm
"$program" --json -q run net.twm --worker tag=desk >run1.json 2>"$log"
"$program" --json -q run net.twm --worker tag=desk >run2.json 2>"$log"
holds "what was sent before stays there" [ "$(member run2.json "['uploaded_bytes']")" = 0 ]
holds "the document says where" [ "$(member run2.json "['worker']['class'][:4]")" = cpu: ]
exits 0 "values against references here" interp ort ok -- verify net.onnx --worker cpu --against interp,ort
exits 0 "times of there" "median ms" -- bench net.onnx --worker cpu --duration 0.1
exits 2 "a peer needs this machine" "needs this machine" -- bench net.onnx --worker cpu --against ort
exits 2 "one run, one device" "one run is on one device" -- run net.onnx --worker cpu --worker any
exits 0 "the log tells what happened" claimed -- fleet log
exits 0 "figures for Prometheus" tilewright_jobs -- fleet metrics
holds "top ends with its reader" timeout 60 bash -c '"$0" fleet top | head -2 | grep -q device' "$program"

# Commands of this machine and leases of its worker take turns.
mkdir -p "$XDG_CACHE_HOME/tilewright/locks"
mkfifo until_closed
flock "$XDG_CACHE_HOME/tilewright/locks/cpu.use" sh -c 'touch held && read -r line' <until_closed &
exec 8>until_closed
holds "a lease is at work" within 60 test -e held
"$program" bench net.onnx --duration 0.1 >waiting.log 2>&1 8>&- &
holds "a local command waits for the worker" within 60 \
  grep -q "this machine's cpu is measuring for the fleet; waiting" waiting.log
exec 8>&-
wait $!
holds "and goes on after it" [ $? -eq 0 ]

worker --device vta:tsim --device vta:tsim --sandbox landlock
holds "two simulators are two devices" within 60 has free 3
exits 0 "an accelerator's simulator" ok -- \
  verify net.onnx --worker vta:tsim --quantize random --fallback cpu --against cpu
exits 0 "a package for vta" "" -- compile net.onnx --target vta --quantize random --fallback cpu -o vta.twm
exits 4 "a package for another device" "can run vta.twm" "the code of vta.twm is for vta" -- run vta.twm --worker cpu
exits 0 "a package for a processor that is not here" "" -- compile net.onnx --target aarch64 -o arm.twm
exits 4 "or for another processor" "the code of arm.twm is for aarch64" -- run arm.twm --worker any
# Most devices are simulators, which run no float model.
exits 0 "any is what can run it" "/cpu: waited" -- run net.onnx --worker any
exits 0 "a package, too" "/cpu: waited" -- run net.twm --worker any
exits 0 "whatever that is" "/vta:tsim" -- run vta.twm --worker any

name=$("$program" --json fleet status | "$python" -c "
import json, sys
print(next(d['name'] for d in json.load(sys.stdin)['status']['devices'] if d['target'] == 'cpu'))")
exits 0 "a device is held" "held_by" -- fleet hold "$name" --for 1m
exits 0 "its holder still uses it" "on $name" -- run net.twm --worker "name=$name"
exits 0 "who has it" "held_by" -- fleet who "$name"
holds "in words, not in JSON" [ "$(grep -c '[{}]' "$log")" -eq 0 ]
exits 0 "and given back" "release_hold: done" -- fleet release "$name"
exits 4 "no such device" "there is no device" -- fleet who nobody/cpu

# A damaged package: the worker says so, and goes on.
head -c 20000 net.twm >cut.twm
exits 8 "a package that is cut off" "" -- run cut.twm --worker cpu
exits 0 "the worker goes on" "on " -- run net.twm --worker cpu

# A worker that dies: its device is free again, its job runs elsewhere or later.
kill -KILL "${workers[0]}"
exits 9 "nobody takes it in time" "no device took the job" -- run net.twm --worker cpu --wait 1s
worker --device cpu
holds "H2 another worker takes over" within 60 "$program" -q run net.twm --worker cpu --wait 5s
kill -TERM "${workers[2]}"
wait "${workers[2]}"
holds "a worker that is asked to leave says what it did" grep -q "jobs done" "$work/worker2.log"

# PoCL compiles kernels, for which it starts a linker; what it made is there for the next run.
if "$program" devices | grep -q "^opencl:0 .* yes"; then
  printf 'tensor twice(X: f32[n]) where n = 1000 {\n  Y[i in n] = 2 * X[i]\n  return Y\n}\n' >twice.tw
  exits 0 "OpenCL without the fleet" "" -- run twice.tw --target opencl --seed 3 --output here.npy
  there() { "$program" -q run twice.tw --target opencl --worker tag="$1" --seed 3 --output there.npy; }
  for sandbox in bwrap landlock; do
    [ $sandbox = landlock ] || bwrap --ro-bind / / --unshare-all true 2>/dev/null || continue
    worker --device opencl:0 --sandbox $sandbox --tag $sandbox
    pid=${workers[-1]}
    holds "OpenCL in $sandbox" within 60 there $sandbox
    holds "with the same bits there" cmp here.npy there.npy
    kill -TERM "$pid"
    wait "$pid"
  done
fi

exits 0 "the server stops" "" -- fleet stop --private pool
exits 10 "and is missed" "error: " -- fleet status
exits 0 "and comes back with all it had" "postgresql://" -- fleet init --private pool
exits 0 "H2 its memory too" claimed -- fleet log

for kind in slurm ssh; do
  exits 0 "H7 a script for $kind" "tilewright worker" -- fleet launch $kind
  "$program" fleet launch $kind >launch.sh
  holds "that a shell reads" bash -n launch.sh
done
exits 0 "H7 a Job for Kubernetes" "kind: Job" runAsNonRoot -- fleet launch k8s --device cpu
exits 0 "a unit for systemd" "DynamicUser=yes" -- fleet launch systemd
exits 2 "another launcher" "did you mean 'slurm'" -- fleet launch slrm
finish
