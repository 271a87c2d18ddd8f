#!/usr/bin/env bash
# Tuning on devices of a fleet: two devices measure, the package is tuned for their class; and what
# becomes of a search whose worker or store goes away, or that is interrupted.
# fleet_tune.sh PROGRAM
source "$(dirname "$0")/fleet_lib.sh"

# tuned FILE EXPRESSION: whether it holds for the document `t` of a search.
tuned() { "$python" -c "import json,sys; t = json.load(open('$1')); sys.exit(not ($2))"; }

"$program" -q zoo lenet5 -o net.onnx || exit 1
exits 0 "a private server" "postgresql://" -- fleet init --private pool
url=$("$program" -q fleet init --private pool)
exits 4 "no worker was ever started" "no device of the fleet" -- tune net.onnx --worker cpu --trials 8
worker --device cpu --device cpu --device vta:tsim
holds "two processors and a simulator" within 60 has free 3

own=$(sql "SELECT compiler FROM fleet.workers")
sql "UPDATE fleet.workers SET compiler = 'tilewright 0.0'" >"$log"
exits 9 "workers of another version alone" "no worker has the compiler" "1 of tilewright 0.0" -- \
  tune net.onnx --worker cpu --trials 8 --wait 1s
sql "UPDATE fleet.workers SET compiler = '$own'" >"$log"

exits 2 "models do not measure there" "leave one of them out" -- \
  tune net.onnx --worker cpu --measure model --trials 8
exits 2 "--wait without devices" "add --worker" -- tune net.onnx --wait 5s --trials 8
exits 4 "simulators need no fleet" "same cycles on every machine" -- \
  tune net.onnx --worker vta:tsim --trials 8
exits 3 "of whatever target" "same cycles on every machine" -- \
  tune net.onnx --target vta --quantize random --fallback cpu --worker cpu --trials 8
"$program" --json -q tune net.onnx --worker cpu --threads 1 --trials 40 --for 120s -o tuned.twm >one.json 2>"$log"
holds "all trials are spent" tuned one.json "t['trials'] == 40 and t['stop'] == 'trials'"
# Two devices of one processor take turns, so one may have done it all.
holds "its document says who measured" tuned one.json "0 < len(t['worker']['devices']) <= 2"
holds "most can be measured" tuned one.json "sum(k.get('outcomes', {}).get('ok', 0) for k in t['tasks']) >= 20"
exits 0 "the package computes the same" ok -- verify tuned.twm
exits 0 "and runs there" "on " -- run tuned.twm --worker cpu

"$program" --json -q tune net.onnx --worker cpu --threads 1 --trials 16 --for 120s >two.json 2>"$log"
holds "the same command goes on from what is in the store" \
  tuned two.json "sum(k['resumed'] for k in t['tasks']) >= 40 and t['trials'] == 16"

# Convolutions in other forms: their kernels are measured, too, and compiling follows what was decided.
"$python" "$here/conv_file.py" 16 8
"$program" --json -q tune conv.onnx --worker cpu --threads 1 --trials 128 --for 300s -o conv.twm >forms.json 2>"$log"
# How many other forms are not hopeless depends on the processor.
holds "convolutions are measured in both forms" tuned forms.json \
  "len(t['forms']) >= 1 and all(f['rule_ns'] > 0 and f['other_ns'] > 0 for f in t['forms'])"
decided=$("$python" -c "
import json
forms = json.load(open('forms.json'))['forms']
print(next((f['other'] for f in forms if f['won']), forms[0]['rule']))")
exits 0 "which is decided once for all" "the algorithm of 1 convolution too" -- \
  compile conv.onnx --threads 1 --store "$url" -o again.twm --explain
holds "as it was measured" [ "$(grep -c WinogradConv "$log")" -$([ "$decided" = direct ] && echo eq || echo gt) 0 ]
exits 0 "and the package computes the same" ok -- verify conv.twm

# A class of another machine than this: its target comes with its offer, and nothing of it runs here.
worker --device model:id=1,seconds=0.02 --device model:id=2,seconds=0.02
holds "two devices that compute nothing" within 60 has free 5
"$program" --json fleet status >status.json
holds "whose numbers become no records, and whose leases lock no processor" \
  tuned status.json "[d['emulated'] for d in t['status']['devices'] if d['class'] == 'model'] == [True, True]"

exits 2 "one class only" "cannot be compared" -- \
  tune net.onnx --worker cpu --worker model --trials 8
exits 4 "and run no packages" "it answers by a model, and runs nothing" -- run net.onnx --worker model --wait 5s
for verb in verify bench; do
  exits 4 "whatever the verb" "runs nothing" -- "$verb" net.onnx --worker model --wait 5s
done

# The server is killed three times while the search ends: as a race is asked for, then the whole
# model, then as what the search came to is stored. A trigger holds each until that was done.
hold_inserts fleet.jobs race "NEW.kind = 'race'"
hold_inserts fleet.jobs model "NEW.kind = 'run'"
hold_inserts fleet.records end "NEW.kind = 'race'"
races=$(sql "SELECT count(*) FROM fleet.records WHERE kind = 'race'")
ended() { ! kill -0 "$server" 2>/dev/null; }
"$program" --json tune net.onnx --worker model --trials 60 --for 60s -o model.twm >model.json 2>ends.log &
search=$!
for moment in race model end; do
  holds "$moment: the server is asked" within 60 held
  let_go "$moment"
  server=$(head -n 1 pool/data/postmaster.pid)
  kill -KILL "$server"
  within 30 ended  # else its lock file counts
  "$program" -q fleet init --private pool >"$log" 2>&1
done
wait $search
holds "H2 a search whose end the store missed three times" [ $? -eq 0 ]
holds "says so, in a race and at its end" grep -q "the store does not answer.*records of the search wait" ends.log
holds "and what it came to is stored" \
  [ "$(sql "SELECT count(*) FROM fleet.records WHERE kind = 'race'")" -gt "$races" ]
holds "both devices measure" tuned model.json "len(t['worker']['devices']) == 2"
holds "a search for them" tuned model.json "t['trials'] == 60 and any(k.get('better') for k in t['tasks'])"

# A device without a compiler: candidates are compiled by its worker, and its command runs them.
worker --device "runner:$(dirname "$program")/tilewright-runner"
holds "a device behind a runner" within 60 has free 6
# measured_there DRAM: as if a worker of that class had measured, with so many bytes per ns of DRAM.
measured_there() {
  sql "UPDATE fleet.classes SET rates = jsonb_build_object(
    'schema', 'tilewright.rates', 'version', 3,
    'machine', '{\"processor\": \"x\", \"cores\": 2, \"compiler\": \"tilewright 0.1.0\"}'::jsonb,
    'measurement', '{\"when\": 1, \"load\": 0, \"steal\": 0, \"spread\": 0, \"kept\": 9, \"bursts\": 9, \"seconds\": 9}'::jsonb,
    'rates', '{\"readings\": 1, \"assumed\": [], \"ghz\": 3, \"f32\": 40, \"bf16\": 0, \"int8\": 0,
               \"l1\": {\"one\": 200, \"all\": 200}, \"l2\": {\"one\": 80, \"all\": 80},
               \"l3\": {\"one\": 40, \"all\": 40}, \"dram\": {\"one\": $1, \"all\": $1},
               \"fork_join_ns\": 400, \"tiles\": []}'::jsonb) WHERE class = 'x86-64-v2'"
}
measured_there 900
exits 0 "impossible speeds of a class are not believed" "the speeds of x86-64-v2 in the store cannot be right" -- \
  tune net.onnx --worker x86-64-v2 --threads 1 --trials 1 --for 60s
measured_there 20
"$program" --json tune net.onnx --worker x86-64-v2 --threads 1 --trials 24 --for 120s -o there.twm >runner.json 2>runner.log
holds "what a worker of the class measured makes its spaces" \
  grep -q "spaces follow the speeds that a worker of x86-64-v2 measured" runner.log
holds "measures" tuned runner.json \
  "t['trials'] == 24 and sum(k.get('outcomes', {}).get('ok', 0) for k in t['tasks']) >= 12"
exits 0 "the package runs there" "on " -- run there.twm --worker x86-64-v2 --seed 3 --output there.npy

# The server is killed, then the worker: the search goes on, and nothing is missing in the end. From the
# second post on each is held until then, so the search cannot end first.
sql "UPDATE fleet.meta SET lease_s = 8" >"$log"  # what the worker has is given to another one soon
kept=$(sql "SELECT count(*) FROM fleet.records")
newest=$(sql "SELECT max(id) FROM fleet.records")
sql "CREATE FUNCTION public.one_came() RETURNS boolean LANGUAGE sql AS
     'SELECT EXISTS (SELECT FROM fleet.records WHERE job IS NOT NULL AND id > $newest AND made < now())'" >"$log"
hold_inserts fleet.records second "NEW.job IS NOT NULL AND public.one_came()"
"$program" --json tune net.onnx --worker cpu --threads 1 --trials 40 --for 200s >three.json 2>away.log &
search=$!
holds "it measures" within 60 held
let_go second
server=$(head -n 1 pool/data/postmaster.pid)
kill -KILL "$server"
holds "H2 the search says that the server is gone" within 60 grep -q "measuring goes on" away.log
holds "its process is gone" within 30 ended  # else its lock file counts
exits 0 "and is back" "postgresql://" -- fleet init --private pool
kill -KILL "${workers[0]}"
worker --device cpu --device cpu --device vta:tsim  # all that the other one had: none is waited for
wait "$search"
holds "H2 all trials are spent all the same" tuned three.json "t['trials'] == 40 and t['stop'] == 'trials'"
holds "and each has its record" [ "$(sql "SELECT count(*) FROM fleet.records")" -ge $((kept + 40)) ]

"$program" tune net.onnx --worker cpu --threads 1 --for 100s >four.log 2>&1 &
search=$!
holds "another one measures" within 60 grep -q "tried" four.log
kill -INT "$search"
wait "$search"
holds "an interrupt ends it with what it has" [ $? -eq 130 ]
holds "nothing of it is left to do" within 60 has free 6
finish
