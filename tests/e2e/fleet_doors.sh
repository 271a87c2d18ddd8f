#!/usr/bin/env bash
# Who gets to a fleet and what workers run: TLS and passwords against a real server, each mistake with
# its own message and exit code; signatures of packages; bytes that were damaged in the database; and
# what a command says of devices that are off, held, or not to be had.
# fleet_doors.sh PROGRAM
source "$(dirname "$0")/fleet_lib.sh"
export PGPASSFILE=$work/none
address=127.$((64 + $$ / 65536 % 64)).$(($$ / 256 % 256)).$(($$ % 256))
mkdir certificates
mkfifo until_closed
"$python" "$here/tls_server.py" "$work/certificates" "$address" <until_closed >server.url 2>server.log &
exec 7>until_closed
trap 'exec 7>&-; leave' EXIT
within 60 test -s server.url || { cat server.log; exit 1; }
url=$(cat server.url)

# safe HOST AUTHORITY [OPTIONS]: ann's way in, as to another host: by name, with all checks.
safe() {
  echo "postgresql://ann@$1/tw?hostaddr=$address&sslmode=verify-full&channel_binding=require" \
    "&sslrootcert=$work/certificates/$2.crt" | tr -d ' '
}
# refused CODE WHAT TEXT URL: a password is nowhere in what is printed.
refused() {
  exits "$1" "$2" "$3" -- fleet status --store "$4"
  grep -q secret "$log" && bad "$2" "it shows the password"
}

"$program" -q zoo lenet5 -o net.onnx || exit 1
export PGPASSWORD=secret
refused 10 "H1 PostgreSQL without a fleet" "PostgreSQL answers at fleet.test:5432, but has no fleet" \
  "$(safe fleet.test fleet.test)"
exits 0 "a fleet in a database that has a name" "for tuning records too" -- fleet init --store "$url"
exits 0 "ann is one of its users" "knows ann" -- fleet login ann --kind user
exits 0 "who may use its devices" "ann may submit" -- fleet grant ann --pool default --submit
exits 0 "H1 H3 the right authority, name and password" "no devices" -- \
  fleet status --store "$(safe fleet.test fleet.test)"
refused 10 "H1 H3 the wrong authority" "not signed by an authority known here" "$(safe fleet.test other.test)"
refused 10 "H1 H3 the wrong name" "is for another host" "$(safe other.test fleet.test)"
refused 10 "H1 no certificate to check by" "there is no certificate to check" "$(safe fleet.test none)"
PGPASSWORD=secret2 refused 10 "H1 H3 the wrong password" "refuses the password of 'ann'" \
  "$(safe fleet.test fleet.test)"
PGPASSWORD='' refused 10 "H1 H3 no password" "wants a password of 'ann'" "$(safe fleet.test fleet.test)"
refused 2 "H3 a plain way to another host" "sslmode=disable is not enough for another host" \
  "postgresql://ann@db.lab/tw?sslmode=disable"
refused 2 "H3 one that asks for too little" "sslmode=require is not enough" \
  "postgresql://ann@db.lab/tw?sslmode=require"
refused 10 "H3 a plain connection is not let in" "does not let 'ann' in" \
  "postgresql://ann@$address/tw?sslmode=disable"
refused 2 "H3 a password in an argument" "a password stands in the URL" "postgresql://ann:secret@$address/tw"
refused 2 "H3 a password behind it" "a password stands in the URL" "postgresql://ann@$address/tw?password=secret"
refused 10 "H1 another database" "has no database 'none'" "$(safe fleet.test fleet.test | sed s,/tw,/none,)"
refused 10 "H1 nobody on that port" "no server at" "postgresql://ann@$address:8081/tw"
unset PGPASSWORD

# Schemas of another age.
sql "UPDATE fleet.meta SET version = version - 1" >"$log"
exits 8 "a schema that is older" "older than this program" "tilewright fleet migrate" -- fleet status
exits 8 "so a worker does not start" "tilewright fleet migrate" -- worker --device cpu
sql "UPDATE fleet.meta SET version = version + 1, min_program = '99.1'" >"$log"
exits 8 "one that needs a newer program" "tilewright 99.1 or newer" -- fleet status
sql "UPDATE fleet.meta SET min_program = '0.1'" >"$log"

# Signatures.
exits 0 "a key" "--trust ann.key.pub" -- fleet keygen ann.key
exits 0 "another one" "" -- fleet keygen eve.key
exits 2 "a key is never written over" "is there already" -- fleet keygen ann.key
exits 2 "what is no key" "holds no public Ed25519 key" -- worker --device cpu --trust net.onnx
worker --device cpu --tag desk --trust ann.key.pub
holds "a worker that trusts one key" within 60 has free 1
exits 8 "H3 a package that nobody signed" "the package is not signed" -- run net.onnx --worker cpu
exits 8 "H3 one that somebody unknown signed" "unknown key" -- run net.onnx --worker cpu --sign eve.key
exits 0 "H3 one that a known key signed" "on " -- run net.onnx --worker tag=desk --sign ann.key
exits 2 "what cannot sign" "no private Ed25519 key" -- run net.onnx --worker cpu --sign ann.key.pub
holds "each refused once, none tried again" \
  [ "$(sql "SELECT string_agg(state || n, ' ' ORDER BY state) FROM (SELECT state, count(*) n FROM fleet.ended GROUP BY state) e")" = "done1 failed2" ]

# Off, held, full.
name=$("$program" --json fleet status | "$python" -c "
import json, sys
print(json.load(sys.stdin)['status']['devices'][0]['name'])")
mine=${url/user=owner/user=ann}
exits 0 "the owner holds the device" "held_by" -- fleet hold "$name" --for 5m
exits 9 "somebody else has it: who, and until when" "held by owner for 2" -- \
  run net.onnx --level 0 --worker cpu --sign ann.key --wait 1s --store "$mine"
exits 0 "and gives it back" "" -- fleet release "$name"
# What was sent meanwhile is damaged before the worker fetches it.
sql "UPDATE fleet.blob_parts SET data = overlay(data PLACING '\\x00ff00ff' FROM 600)
     WHERE octet_length(data) > 100000 AND login = 'ann'" >"$log"
exits 0 "damaged bytes are sent once more" "it is sent once more" -- \
  run net.onnx --level 0 --worker cpu --sign ann.key --store "$mine"
kill -TERM "${workers[0]}"
wait "${workers[0]}"
exits 9 "a class that is off: since when" "are off: $name: its worker left at" "no device took the job" -- \
  run net.onnx --worker cpu --sign ann.key --wait 1s
exits 0 "one job may wait" "" -- fleet login ann --max-ready 1
"$program" run net.onnx --worker cpu --sign ann.key --store "$mine" >waiting.log 2>&1 &
waiting=$!
holds "it waits" within 60 grep -q "each device that fits is off" waiting.log
exits 9 "the queue is full" "more than 1 jobs waiting" -- run net.onnx --worker cpu --wait 1s --store "$mine"
"$program" run net.onnx --worker cpu --sign ann.key --store "$mine" >full.log 2>&1 &
full=$!
holds "without a limit it waits, and says so" within 60 grep -q "the queue is full" full.log

# Somebody who gets into the database changes the job that waits.
sql "UPDATE fleet.jobs SET payload = jsonb_set(payload, '{runs}', '7')" >"$log"
# This worker's clock is a day ahead, and its cache is empty.
# shellcheck disable=SC2016  # the variable that faketime sets
LD_PRELOAD=$(faketime -f +1d sh -c 'echo $LD_PRELOAD') FAKETIME=+1d FAKETIME_DISABLE_SHM=1 \
  FAKETIME_DONT_FAKE_MONOTONIC=1 "$program" worker --device cpu --tag desk --trust ann.key.pub \
  --cache-dir fresh >late.log 2>&1 &
workers+=($!)
wait "$waiting"
holds "a job that was changed on the way" [ $? -eq 8 ]
holds "is said to be" grep -q "the job is not what was signed" waiting.log
wait "$full"
holds "H5 the clock of a host is a day wrong: works" [ $? -eq 0 ]

# A worker that stops for longer than its lease: its job runs again, what it has counts nowhere. A
# trigger holds its post until it is stopped; then that connection ends, and nothing of the post stays.
sql "UPDATE fleet.meta SET lease_s = 3" >"$log"
hold_inserts fleet.ended post true
"$program" bench net.onnx --worker cpu --sign ann.key --duration 0.1 >bench.log 2>&1 &
bench=$!
holds "it was at work" within 60 held
kill -STOP "${workers[1]}"
let_go post
sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'" >"$log"
lost() { [ "$(sql "SELECT count(*) FROM fleet.events WHERE note = 'lost'")" -gt 0 ]; }
holds "H5 its lease ends" within 60 lost
kill -CONT "${workers[1]}"
wait "$bench"
holds "H5 the job runs again" [ $? -eq 0 ]
holds "and what counts came under a later lease" [ "$(sql "SELECT e.token > l.token
  FROM fleet.events l JOIN fleet.ended e ON e.state = 'done' AND e.ended > l.at
  WHERE l.note = 'lost'")" = True ]
sql "UPDATE fleet.logins SET blob_bytes = 1024, max_ready = 100 WHERE login = 'ann'" >"$log"
exits 9 "the quota of blobs is used up" "more than 1024 bytes" -- \
  run net.onnx --level 1 --worker cpu --sign ann.key --store "$mine"
finish
