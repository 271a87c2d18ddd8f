#!/bin/bash
# Tuning as a user meets it: budgets, records that compiling uses, interruptions, wrong usage.
# tune.sh PROGRAM [kills N]: `kills` only ends runs at random moments, N times.
source "$(dirname "$0")/lib.sh" "$1"
store=$work/records.sqlite
export TILEWRIGHT_RECORDS=$store

cat >product.tw <<'TW'
tensor product(A: f32[m, k], const B: f32[k, n]) where m = 96, n = 128, k = 160 {
  C[i in m, j in n] = sum(l in k) A[i, l] * B[l, j]
  D[i in m, j in n] = max(C[i, j], 0)
  return D
}
TW
sed 's/m = 96/m = 48/' product.tw >nearby.tw

# value JSON-FILE EXPRESSION: of Python, with the document as `d`.
value() { "$python" -c "import json,sys; d=json.load(open('$1')); print($2)"; }
# Workers of this test run in its folder; tests beside it have workers of their own.
workers_here() {
  local process
  for process in /proc/[0-9]*; do
    [ "$(readlink "$process/cwd" 2>/dev/null)" = "$PWD" ] || continue
    tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep "^$program worker"
  done
}
no_workers() { [ -z "$(workers_here)" ]; }
rows() { "$program" --json records ls --store "$store" >rows.json 2>>"$log" && value rows.json 'd["count"]'; }
more_than() { [ "$(rows)" -gt "$1" ]; }

# survives N: kill -9 at random moments, the first after something was measured: the store opens, and
# has all that it had.
survives() {
  local lost=0 first i before after pid
  first=$(rows)
  for i in $(seq "$1"); do
    before=$(rows)
    "$program" tune product.tw --for 60s --space tiling --seed "$i" >/dev/null 2>&1 &
    pid=$!
    [ "$i" -gt 1 ] || within 60 more_than "$before"
    sleep "$(awk -v s="$RANDOM" 'BEGIN { print 0.4 + 1.2 * s / 32768 }')"
    kill -9 $pid
    wait $pid 2>/dev/null
    after=$(rows) || lost=$((lost + 1))
    [ "${after:-0}" -ge "$before" ] || lost=$((lost + 1))
  done
  holds "A6 nothing is lost by $1 kills" [ $lost -eq 0 ]
  holds "something was measured between them" [ "$(rows)" -gt "$first" ]
  exits 0 "A6 records replay after the kills" " 0 do not" -- records validate --kernel product
  holds "no worker outlives its run" within 20 no_workers
}
if [ "${2:-}" = kills ]; then
  "$program" tune product.tw --trials 1 >/dev/null 2>&1  # makes the store
  survives "$3"
  finish
  exit
fi

# Wrong usage: exit 2 with what is wrong.
exits 2 "no length of time" "no positive number with a unit" "--for 90s" -- tune product.tw --for soon
exits 2 "unknown unit" "units are" -- tune product.tw --for 3weeks
exits 2 "no share" "--until-stall 2%" -- tune product.tw --until-stall 5x
exits 2 "no such method" "--method" -- tune product.tw --method oracle
exits 2 "no such space" "there is no space 'nowhere'" -- tune product.tw --space nowhere
exits 2 "no such measure" "cannot measure by 'guess'" -- tune product.tw --measure guess
exits 2 "replay file missing" "there is no file" -- tune product.tw --measure replay:none.jsonl
exits 2 "report into nowhere" "the folder 'nowhere' does not exist" -- tune product.tw --report nowhere/r.html
exits 2 "package over a folder" "it is a folder" -- tune product.tw -o .
exits 2 "nothing to tune" "nothing to work on" -- tune
exits 2 "store missing" "there is no record store none.sqlite" -- compile product.tw --records none.sqlite
exits 2 "records without a store" "there is no record store" -- records ls
exits 2 "records without an action" "" -- records
echo "this is no data base, but it is long enough to be read as one" >foreign.sqlite
exits 2 "foreign file" "foreign.sqlite" -- records --store foreign.sqlite ls
exits 2 "foreign lines" "not a file of tuning records" -- records import product.tw
exits 4 "target of another machine" "does not run on this machine" -- tune product.tw --target aarch64

# Without running anything.
exits 0 "dry run" "product" -- tune product.tw --dry-run
exits 0 "by the model" "tuned us" -- tune product.tw --measure model --trials 20
holds "neither leaves a store" [ ! -e "$store" ]

# One operator: measured, recorded, used.
exits 0 "tune" "product" -- tune product.tw --trials 24 --seed 5 --report page.html -o tuned.twm
holds "report is one file" grep -q '<svg' page.html
holds "report loads nothing" sh -c "! grep -qE 'https?://|src=' page.html"
tried=$(rows)
holds "a record per trial, rule and race" [ "$tried" -ge 26 ]
exits 0 "compile uses records" "of 1 kernel from tuning records" -- compile product.tw -o again.twm
exits 0 "and can leave them" "" -- compile product.tw --no-records -o plain.twm
holds "which shows" [ "$(grep -c "from tuning records" "$log")" -eq 0 ]
exits 0 "verify uses records" "of 1 kernel from tuning records" -- verify product.tw --against interp
exits 0 "run uses records" "of 1 kernel from tuning records" -- run product.tw
exits 0 "A7 other threads, other records, which is said" "of 1 kernel do not count here: they are for threads " "here 7" -- compile product.tw --threads 7 -o seven.twm
holds "which shows too" [ "$(grep -c "from tuning records" "$log")" -eq 0 ]

# Records: looking, moving, checking.
exits 0 "ls" "product" -- records ls
exits 0 "best" "race" -- records best
exits 0 "validate" " replay, 0 do not" -- records validate
key=$("$program" --json records best 2>/dev/null | "$python" -c 'import json,sys; print(json.load(sys.stdin)["records"][0]["workload"])')
exits 0 "replay" "func" -- records replay "$key"
exits 2 "replay of a workload that is not there" "no valid record" -- records replay sha256:0
exits 0 "export" "" -- records export -o all.jsonl
exits 0 "import" "$tried added" -- records --store other.sqlite import all.jsonl
exits 0 "import again" "0 added, $tried known" -- records --store other.sqlite import all.jsonl
exits 0 "merge" "0 added, $tried known" -- records --store other.sqlite merge "$store"
exits 0 "import from a package" "1 added" -- records --store packed.sqlite import tuned.twm
exits 0 "compile from a package's records" "of 1 kernel from tuning records" -- compile product.tw --records packed.sqlite -o p.twm
exits 0 "prune" "left" -- records --store other.sqlite prune --keep 2
exits 0 "the best stays" "race" -- records --store other.sqlite best
"$python" - "$work/broken.sqlite" "$store" <<'PY'
import shutil, sqlite3, sys
broken, store = sys.argv[1:]
db = sqlite3.connect(store)
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
db.close()
shutil.copy(store, broken)
db = sqlite3.connect(broken)
db.execute("UPDATE records SET schedule = 'split(loop=gone, factor=2)' WHERE outcome = 'ok'")
db.commit()
PY
exits 8 "validate says what does not replay" "no loop is named gone" -- records --store broken.sqlite validate
exits 0 "A5 what does not replay is skipped" "records do not fit" -- compile product.tw --records broken.sqlite -o b.twm

# Records of another machine: where a search starts, and no more. Columns say whose they are.
rows >/dev/null
holds "records say their kind, machine and unit" [ "$(value rows.json '{r["kind"] for r in d["records"]} == {"rule", "schedule", "race"} and all(r["unit"] == "ns" and "@%s:" % r["machine"] in r["target"] for r in d["records"])')" = True ]
cat >edit.py <<'PY'
# edit.py STORE NEW WHAT: a copy of a store, changed.
import shutil, sqlite3, sys
store, new, what = sys.argv[1:]
db = sqlite3.connect(store)
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
db.close()
shutil.copy(store, new)
db = sqlite3.connect(new)
if what == "machine":
    db.execute("UPDATE records SET target = replace(target, '@' || machine, '@ffff0000'), machine = 'ffff0000'")
if what == "newer":
    db.execute("PRAGMA user_version = 99")
if what == "old":  # as programs wrote it whose records had neither kind nor machine nor unit
    db.executescript("DROP TRIGGER refuse_older; DROP INDEX by_cost; ALTER TABLE records RENAME TO r")
    columns = ", ".join(f'"{c[1]}" {c[2]} NOT NULL' for c in db.execute("PRAGMA table_info(r)")
                        if c[1] not in ("kind", "machine", "unit"))
    names = ", ".join(f'"{c[1]}"' for c in db.execute("PRAGMA table_info(r)") if c[1] not in ("kind", "machine", "unit"))
    db.executescript(f"""CREATE TABLE records ({columns}, UNIQUE (workload, target, compiler, schedule, point, searcher, "when", cost));
        INSERT INTO records SELECT {names} FROM r ORDER BY rowid; DROP TABLE r; PRAGMA user_version = 1;
        CREATE INDEX by_cost ON records (workload, target, outcome, cost)""")
db.commit()
PY
"$python" edit.py "$store" moved.sqlite machine
exits 0 "A7 records of another machine do not count" "1 kernel do not count here: they are for machine ffff0000" -- compile product.tw --records moved.sqlite -o m.twm
holds "which shows" [ "$(grep -c "from tuning records" "$log")" -eq 0 ]
exits 0 "but a search starts from them" "tuning records of 1 kernel are for machine ffff0000" -- tune product.tw --trials 4 --records moved.sqlite
exits 0 "and measures anew" "of 1 kernel from tuning records" -- compile product.tw --records moved.sqlite -o m.twm

# Stores of programs before and after this one.
"$python" edit.py "$store" old.sqlite old
before=$(sha256sum <old.sqlite)
exits 0 "an old store is read" "of 1 kernel from tuning records" -- compile product.tw --records old.sqlite -o o.twm
exits 0 "with all that it has" " rule " " race " " schedule " -- records --store old.sqlite ls --limit 1000
holds "and stays as it is" [ "$(sha256sum <old.sqlite)" = "$before" ]
exits 0 "an old store takes records" "0 added, $tried known" -- records --store old.sqlite import all.jsonl
exits 0 "and keeps its own" "0 added, $tried known" -- records --store old.sqlite merge "$store"
"$python" edit.py "$store" newer.sqlite newer
exits 8 "a newer store is refused" "version 99, this program writes 2" -- records --store newer.sqlite ls

# The same run from replayed readings: the same proposals and the same package, twice.
for side in a b; do
  mkdir "$side"
  (cd "$side" && cp ../product.tw . && "$program" --json tune product.tw --trials 24 --seed 5 \
    --measure "replay:$work/all.jsonl" -o replay.twm >run.json 2>>"$log")
done
holds "A10 replay repeats proposals" [ "$(value a/run.json 'd["proposals"]')" = "$(value b/run.json 'd["proposals"]')" ]
holds "replay found all readings" [ "$(value a/run.json 'sum(t["outcomes"].get("lost",0) for t in d["tasks"])')" = 0 ]
holds "A10 replay repeats the package" cmp a/replay.twm b/replay.twm

# Records of two targets in one store: each compile takes its own.
exits 0 "tune for another target" "product" -- tune product.tw --target x86-64-v3 --trials 8 --records v3.sqlite
exits 0 "A5 merge of two targets" " added" -- records --store both.sqlite merge "$store" v3.sqlite
for target in cpu x86-64-v3; do
  exits 0 "A5 compile for $target takes its own records" "from tuning records" -- \
    compile product.tw --target $target --records both.sqlite -o $target.twm
done
exits 0 "A7 and for a third target" "they are for processor x86-64-v3, here x86-64-v2" -- compile product.tw --target x86-64-v2 --records both.sqlite -o v2.twm
holds "A5 there are none" [ "$(grep -c "from tuning records" "$log")" -eq 0 ]

# A space in which nothing is possible is no result.
cat >impossible.sketch <<'TW'
decide i: split main.i into 2
split(loop=main.i, factor=$i.1)
vectorize(loop=main.l)
TW
for turn in first second; do
  exits 6 "A4 a space without a schedule names what rules them out, the $turn time" "12 candidates: " \
    "updates one element of C in several iterations" "leave out --space" -- \
    tune product.tw --space impossible.sketch --trials 30 --records impossible.sqlite -o impossible.twm
done
holds "and leaves no package" [ ! -e impossible.twm ]

# A second run goes on; a shape alike starts where this one was fastest.
exits 0 "resume" "" -- --json tune product.tw --trials 8
"$program" --json tune product.tw --trials 8 >resumed.json 2>>"$log"
holds "A7 what was measured is not measured again" [ "$(value resumed.json 'd["tasks"][0]["resumed"]')" -ge 24 ]
exits 0 "nearby shape" "" -- tune nearby.tw --trials 8
exits 0 "nearby shape, on its own" "" -- tune nearby.tw --trials 8 --transfer none

# A learned model as guide, over loop programs; and one that begins with what another kernel taught.
exits 0 "A11 a learned model guides the search" "product" -- tune product.tw --method xgb --trials 48 --records xgb.sqlite
holds "A11 by trials beyond the random ones" [ "$("$program" --json records ls --store xgb.sqlite 2>>"$log" | "$python" -c '
import json,sys; print(sum(r["searcher"] == "xgb" for r in json.load(sys.stdin)["records"]))')" -ge 40 ]
"$program" --json tune nearby.tw --method xgb --trials 8 --records xgb.sqlite >taught.json 2>taught.log
holds "a kernel alike teaches the model" [ "$(value taught.json 'd["transfer"]["taught"]')" = 1 ]
holds "and a line says so" grep -q "learned from .* schedules" taught.log

# A suite under a budget that is too short for it: something is tried, the rest is named.
"$python" - <<'PY'
import json
case = {"operator": "gemm", "dtype": "float32", "suite": "s"}
sizes = [(32 + 16 * i, 48 + 16 * i, 64 + 32 * i) for i in range(40)]
json.dump({"cases": [dict(case, id=f"s/{i}", params={"batch": 1, "m": m, "n": n, "k": k}, macs=m * n * k,
                          input_shapes=[[m, k], [k, n]], output_shape=[m, n])
                     for i, (m, n, k) in enumerate(sizes)]}, open("suite.json", "w"))
PY
"$program" --json tune --workload suite.json --for 2s --records suite.sqlite >suite.out 2>>"$log"
holds "short budgets over suites" [ "$(value suite.out 'd["trials"]')" -gt 0 ]

# The budget is kept; the end says what was tried, why it stopped and what is left.
start=$SECONDS
exits 0 "A1 tune says what it tried" "tried " "stopped because the time is up" "left to gain: at most" -- \
  tune product.tw --space tiling --for 6s --records budget.sqlite
holds "A1 tune ends within its budget" [ $((SECONDS - start)) -le 15 ]
exits 0 "A1 the package of what was found" "schedules of 1" -- tune product.tw --space tiling --for 4s --records budget.sqlite -o budget.twm
exits 0 "the untuned one" "" -- compile product.tw --no-records -o untuned.twm
exits 0 "A1 A8 it is no slower" "95 %" -- \
  bench budget.twm --compare untuned.twm --threshold 3 --duration 1
exits 2 "two are compared" "NEW.twm --compare OLD.twm" -- bench budget.twm plain.twm --compare untuned.twm
exits 0 "the number of trials is a reason" "tried 8 schedules" "stopped because 8 trials were asked for" -- \
  tune product.tw --trials 8 --records count.sqlite
# A space of few schedules is followed by the next one, unless it was named.
sed 's/m = 96, n = 128, k = 160/m = 4, n = 8, k = 4/' product.tw >tiny.tw
"$program" --json tune tiny.tw --trials 1000 --records tiny.sqlite >tiny.json 2>>"$log"
holds "the next space follows" [ "$(value tiny.json 'd["tasks"][0]["space"]')" = tiling ]
exits 0 "a named space is the only one" "every schedule of constructive was tried" -- \
  tune tiny.tw --trials 1000 --space constructive --records tiny2.sqlite

# The algorithm of a convolution is measured too, and compiling follows the record.
"$python" "$here/conv_file.py" 16 8
"$program" --json tune conv.onnx --threads 2 --trials 32 --records forms.sqlite >forms.json 2>>"$log"
# How many other forms are not hopeless depends on the processor.
holds "both forms are measured" [ "$(value forms.json 'len(d["forms"])')" -ge 1 ]
holds "their kernels are tasks" [ "$(value forms.json 'len(d["tasks"])')" -ge 2 ]
exits 0 "records of algorithms are valid" " 0 do not" -- records --store forms.sqlite validate
"$program" --json records ls --store forms.sqlite --limit 1000 >rows.json 2>>"$log"
"$python" - <<'PY'
import json
rows = [r for r in json.load(open("rows.json"))["records"] if r["kind"] == "algorithm"]
assert rows
for form, file in (("direct", "direct.jsonl"), ("winograd 2", "winograd.jsonl")):
    lines = [{"format": "tilewright-records", "version": 1}, dict(rows[0], point="algorithm: " + form)]
    open(file, "w").write("".join(json.dumps(line) + "\n" for line in lines))
PY
for form in direct winograd; do
  exits 0 "import of a form" "1 added" -- records --store $form.sqlite import $form.jsonl
  exits 0 "compile by it" "the algorithm of 1 convolution too" -- compile conv.onnx --threads 2 --records $form.sqlite -o $form.twm --explain
  holds "and it is $form" [ "$(grep -c WinogradConv "$log")" -$([ $form = direct ] && echo eq || echo gt) 0 ]
  exits 0 "which computes the same" "" -- verify conv.onnx --threads 2 --records $form.sqlite --against interp
  exits 0 "packages carry it" "1 added" -- records --store $form.2.sqlite import $form.twm
done

# Layers for VTA: cycles of its simulator decide, and compiling takes what won.
exits 0 "tune for VTA" "kcycles" -- tune conv.onnx --target vta --quantize random --trials 40 --records vta.sqlite
exits 0 "whose records count cycles" " kcycles " -- records --store vta.sqlite ls
exits 0 "compile for VTA by records" "of 3 kernels from tuning records" -- compile conv.onnx --target vta --quantize random --records vta.sqlite -o vta.twm
exits 0 "which computes the same" "" -- verify conv.onnx --target vta --quantize random --records vta.sqlite
exits 0 "other hardware, other records" "" -- compile conv.onnx --target vta --hw vta-extended --quantize random --records vta.sqlite -o vta2.twm
holds "which shows" [ "$(grep -c "from tuning records" "$log")" -eq 0 ]

# Ctrl-C: soon (two seconds where nothing else runs), exit 130, everything measured is kept.
before=$(rows)
"$program" tune product.tw --for 60s --space tiling -o stopped.twm >"$log" 2>&1 &
pid=$!
holds "workers measure" within 60 more_than "$before"
start=$(date +%s%N)
kill -INT $pid
wait $pid
code=$?
took=$((($(date +%s%N) - start) / 1000000))
holds "Ctrl-C exits 130" [ $code -eq 130 ]
holds "soon ($took ms)" [ $took -lt 10000 ]
holds "the package is written" [ -s stopped.twm ]
holds "records are kept" [ "$(rows)" -gt "$before" ]

survives 2
finish
