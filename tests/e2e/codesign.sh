#!/usr/bin/env bash
# Co-design as docs/codesign.md walks through it, on a small network; kills in the middle, and bad input.
# codesign.sh PROGRAM
source "$(dirname "$0")/lib.sh"
search=(codesign search net.onnx --space edge)

cat >few.toml <<'SPACE'
kind = "space"
name = "few"
technology = "asic45"
[parameters]
rows = [8, 16]
banks = { from = 1, to = 4 }
spad_kb = [64, 128]
[fixed]
intrinsic = "gemm"
cols = "rows"
local_kb = 32
bus_bytes = 8
burst_bytes = 2048
SPACE
holds "a network" "$program" -q zoo resnet18 --size 32 -o net.onnx
exits 0 "choices of layers" "M=input N=weights" "conv2d" "none:" "weights packed" -- codesign choices net.onnx

# Tensor expressions and operators of a workload file, with every order of contraction.
cat >mttkrp.tw <<'TW'
tensor mttkrp(A: i8[8, 20, 30], B: i8[30, 12], C: i8[20, 12]) {
  D[i in 8, j in 12] = sum(k in 20, l in 30) i32(A[i, k, l]) * i32(B[l, j]) * i32(C[k, j])
  return D
}
TW
cat >cases.json <<'JSON'
{"cases": [{"id": "m", "suite": "s", "operator": "mttkrp", "dtype": "int8", "macs": 57600,
            "params": {"i": 8, "j": 12, "k": 20, "l": 30}, "output_shape": [8, 12]},
           {"id": "t", "suite": "s", "operator": "ttm", "dtype": "int8", "macs": 57600,
            "params": {"i": 8, "j": 12, "k": 20, "l": 30}, "output_shape": [8, 12, 20]}]}
JSON
printf 'kind = "spatial"\nintrinsic = "gemm"\nrows = 8\ncols = 8\n' >gemm.toml
exits 0 "an expression with three factors" "contract in pairs" "A * (B * C)" "host + 4" -- codesign choices mttkrp.tw
exits 0 "an operator" "mttkrp_half gathers" "3 orders of contraction" -- codesign choices --workload cases.json --id m
exits 0 "choices on a design" "j 30 apart" "cycles" "i=j j=k k=l" -- codesign choices --design gemm.toml --workload cases.json --id t
exits 0 "orders of an expression" "D.1" -- codesign eval gemm.toml mttkrp.tw --order 3
exits 0 "a suite on a design" "m: y0" "t: y0" -- codesign eval gemm.toml --workload cases.json --suite s
exits 0 "a search for an operator" "knee" "conv2d can run no layer" -- codesign search --workload cases.json --id t -o ttm --evaluations 3
exits 8 "the same folder for another operator" "model: here" -- codesign search --workload cases.json --id m -o ttm --evaluations 3
exits 2 "an order that is not there" "has 3 of them" -- codesign eval gemm.toml mttkrp.tw --order 4
exits 2 "an order of two factors" "three or more factors" -- codesign eval gemm.toml --workload cases.json --id t --order 1
counts_of_table() {
  "$program" codesign choices mttkrp.tw --json >choices.json && "$python" - <<'PY'
import json
report = json.load(open("choices.json"))["subjects"][0]
orders = report["orders_of_contraction"][0]["orders"]
found = {order["text"]: [part["sets_of_loops"] for part in order["stages"]] for order in orders}
assert found["(A * B) * C"] == [dict(gemm=2, gemv=3, dot=1, conv2d=0), dict(gemm=0, gemv=1, dot=1, conv2d=0)], found
assert found["A * (B * C)"][1] == dict(gemm=2, gemv=4, dot=2, conv2d=0), found
assert all(not choice["usable"] and choice["why"] for unit in report["computations"][0]["units"] for choice in unit["choices"])
PY
}
holds "sets of loops of each order" counts_of_table
exits 0 "a space" "14976 points" "power at most 2000 mW" -- codesign space edge
exits 0 "a search" "latency" "power" "area" "knee" -- "${search[@]}" -o run --evaluations 12
holds "G4 a search leaves its files" test -s run/study.sqlite -a -s run/points.jsonl -a -s run/front.csv -a -s run/report.html
holds "G4 a row per evaluation" test "$(wc -l <run/points.jsonl)" -eq 12
exits 0 "its front" "knee" -- codesign front run
exits 0 "a design" "design/hw.toml" -- codesign front run --pick min:latency -o design
holds "a design has a page" grep -q "one step" design/report.html
holds "with loops" grep -q "one COMPUTE" design/report.html

# Its program is the one that `compile` makes for it, and nothing is written where there is none any more.
same_program() {
  "$program" compile net.onnx --target spatial --hw design/hw.toml --quantize random:4 --fallback cpu -o own.twm 2>/dev/null &&
    "$program" sim own.twm --asm >own.asm && "$program" sim design/net.twm --asm >design.asm && test -s own.asm && cmp own.asm design.asm
}
holds "the program of a design" same_program
holds "its page names it" grep -q "net.twm" design/report.html
exits 0 "it runs as it was compiled" "ok" -- verify design/net.twm
exits 0 "an operator's design" "t.twm: the program" -- codesign front ttm -o design-ttm
exits 0 "its program" "ok" -- verify design-ttm/*t.twm
for target in dpu gemmini; do
  exits 2 "an operator for $target" "takes whole models" -- compile --workload cases.json --id t --target $target -o t.twm
done
exits 0 "a design alone" "alone/hw.toml" -- codesign front run -o alone --no-package
holds "without a program" test ! -e alone/net.twm -a -s alone/report.html
mv net.onnx net-kept.onnx
exits 8 "a design of a model that is gone" "net.onnx" "no longer there" -- codesign front run -o gone
exits 0 "the design alone" "no report.html" -- codesign front run -o without --no-package
"$program" -q zoo resnet18 --size 40 -o net.onnx
exits 8 "a design of a model that was changed" "model: here" -- codesign front run -o gone
mv net-kept.onnx net.onnx
holds "nothing half written" test ! -e gone
exits 0 "a contest" "on the true front" "ceiling" "latency: value over the estimate" "what another method has with 8" "as random" -- codesign contest net.onnx --space ./few.toml -o contest --seeds 3 --evaluations 4,8
exits 0 "a contest on the table that is there" "mobo:ehvi" -- codesign contest net.onnx --space ./few.toml -o contest --seeds 2 --evaluations 8 --methods mobo:ehvi --objectives latency,energy
exits 2 "a contest of an unknown method" "no search method" -- codesign contest net.onnx --space ./few.toml -o contest --methods magic
exits 0 "a design on a model" "units busy" "area" -- codesign eval design/hw.toml net.onnx

# A mapping that is given is judged as it is: what eval found, given back, is what it found.
same_mappings() { # same_mappings DESIGN
  "$program" codesign eval "$1" net.onnx --mappings >mappings.txt && "$program" codesign eval "$1" net.onnx --json >found.json &&
    "$program" codesign eval "$1" net.onnx --map mappings.txt --json >given.json && test -s mappings.txt && cmp found.json given.json
}
holds "mappings given back" same_mappings design/hw.toml
holds "mappings given back, of VTA" same_mappings vta
printf 'tensor g(A: i8[700, 190], B: i8[190, 130]) {\n  C[i in 700, j in 130] = sum(k in 190) i32(A[i, k]) * i32(B[k, j])\n  return C\n}\n' >g.tw
eval_g=(codesign eval gemm.toml g.tw --map)
exits 0 "a mapping by hand" "C " -- "${eval_g[@]}" "first=A i=i j=j k=k tile=i32,j32,k64"
exits 6 "one that does not fit" "--map:1:3" "scratchpad: " "A 2 x 131" "private memory: " -- "${eval_g[@]}" "C: first=A i=i j=j k=k"
exits 2 "a word that is none" "--map:1:29" "q130" -- "${eval_g[@]}" "first=A i=i j=j k=k tile=i8,q130"
exits 2 "a choice that is none" "its choices: first=A i=i j=j k=k" -- "${eval_g[@]}" "C: first=A i=k j=j k=i"
exits 2 "a layer that is not there" "did you mean" -- "${eval_g[@]}" "D: first=A i=i j=j k=k"
printf '# two lines\nC: first=A i=i j=j k=k tile=i900\n' >wrong.txt
exits 2 "a file of mappings" "wrong.txt:2:3" "1..700" -- "${eval_g[@]}" wrong.txt

# The evaluation of a point is the same by whatever way it is asked for.
same_latency() {
  "$program" codesign eval design/hw.toml net.onnx --json >eval.json 2>/dev/null &&
    "$python" - <<'PY'
import csv, json
least = min(float(row["latency"]) for row in csv.DictReader(open("run/front.csv")))
found = json.load(open("eval.json"))
assert abs(found["latency"] - least) < 1e-6 * least and found["technology"] == "hasco-fpga", found
PY
}
holds "eval says of a picked design what the search did" same_latency

# Fewer evaluations and the rest later are the same as all at once.
"$program" "${search[@]}" -o parts --evaluations 5 >/dev/null 2>&1
exits 0 "a search goes on" "going on after 5 evaluations" -- "${search[@]}" -o parts --evaluations 12
holds "in parts as at once" cmp run/front.csv parts/front.csv

# A run is killed as soon as it has kept a row more, again and again until all are there; no row is lost, and the end is
# that of one run. How many rows a run keeps before the signal arrives differs; one at least is interrupted.
killed_and_gone_on() {
  "$python" - "$program" "${search[@]}" -o killed --evaluations 12 <<'PY' && cmp run/front.csv killed/front.csv
import sqlite3, subprocess, sys, time
def kept():
    try:
        return sqlite3.connect("file:killed/study.sqlite?mode=ro", uri=True).execute(
            "select count(*) from evaluations").fetchone()[0]
    except sqlite3.Error:
        return 0
interrupted, before = 0, 0
while before < 12:
    run = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.time() + 60
    while kept() == before and run.poll() is None:
        assert time.time() < end, "no row in a minute"
        time.sleep(0.01)
    run.kill()
    run.wait()
    after = kept()
    assert after > before, (before, after)
    interrupted += after < 12
    before = after
assert interrupted, "no run was interrupted"
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
PY
}
holds "kill -9 loses nothing that was kept" killed_and_gone_on

# Of a long front a search prints some designs; the folder has all.
exits 0 "a search with a long front" "one in 2 designs of the front is shown" "knee" -- \
  codesign search net.onnx --space hasco-truth --method random --evaluations 150 -o wide
"$program" -q codesign front wide >all.txt 2>/dev/null
holds "its front has all designs" test "$(wc -l <all.txt)" -eq "$(($(wc -l <wide/front.csv) + 1))"
holds "more than were printed" test "$(wc -l <all.txt)" -gt 42
# The unit as a decision, and VTA as another kind of hardware: the design that is picked compiles.
space() { # space NAME INTRINSICS FIXED
  printf 'kind = "space"\nname = "%s"\ntechnology = "asic45"\n[parameters]\nintrinsic = [%s]\nrows = [4, 8]\n' "$1" "$2"
  printf 'spad_kb = [64, 128]\n[fixed]\ncols = "rows"\nlocal_kb = 32\nbanks = 4\nbus_bytes = 8\nburst_bytes = 256\n%s' "$3"
}
space four '"gemm", "gemv", "dot", "conv2d"' '' >four.toml
exits 0 "four units in one space" "16 points" "gemm gemv dot conv2d" -- codesign space four.toml
exits 0 "a search over units" "16 designs evaluated" -- codesign search net.onnx --space four.toml -o four --method enumerate
holds "every unit was tried" test "$(grep -oE 'intrinsic = [^a-z]*[a-z0-9]+' four/points.jsonl | sort -u | wc -l)" -eq 4
exits 0 "G6 a search for VTA, its best on the cycle simulator" "tsim of 3 designs: latency" "tsim" -- \
  codesign search net.onnx --space vta -o vta --evaluations 6 --fidelity tsim:3
exits 0 "the same again has nothing to do" "0 of them in this run" -- \
  codesign search net.onnx --space vta -o vta --evaluations 6 --fidelity tsim:3
holds "a row per evaluation and level" test "$(wc -l <vta/points.jsonl)" -eq 9
exits 0 "F9 the front is of one level, which is said" "these are the designs that tsim judged" "--level model" -- codesign front vta
exits 0 "the model's own front" "knee" -- codesign front vta --level model
one_source() {
  "$program" --json codesign front vta >tsim.json 2>/dev/null &&
    "$program" --json codesign front vta --level model >model.json 2>/dev/null &&
    "$python" - <<'PY'
import csv, json
levels = {name: {point["level"] for point in json.load(open(name + ".json"))["front"]} for name in ("tsim", "model")}
assert levels == {"tsim": {"tsim"}, "model": {"model"}}, levels
assert {row["level"] for row in csv.DictReader(open("vta/front.csv"))} == {"tsim"}
assert "Figures of two levels do not compare" in open("vta/report.html").read()
PY
}
holds "F9 in tables, files and the page" one_source
exits 0 "a design of VTA" "design-vta/hw.toml" -- codesign front vta --pick knee -o design-vta
exits 0 "a design of VTA on a model" "units busy" "area" -- codesign eval design-vta/hw.toml net.onnx
exits 0 "it runs" "ok" -- verify design-vta/net.twm
exits 0 "a spatial array's best on the cycle simulator" "tsim of 2 designs: latency" -- \
  codesign search net.onnx --space edge -o checked --evaluations 4 --fidelity tsim:2

# Synthesis in the place of the model's cells, in a technology that counts them. These tools stand for Yosys, whose cells
# codesign_synth_slow_test and `scripts/test full` look at: they are for what a search does with an answer, or with none.
sed 's/asic45/hasco-fpga/; s/\[4, 8\]/[2, 4]/; s/\[64, 128\]/[16, 32]/; s/local_kb = 32/local_kb = 16/; s/, "gemv".*/]/' four.toml >fpga.toml
fpga=(codesign search net.onnx --space fpga.toml --method enumerate)
yosys_that() { # yosys_that NAME COMMAND: a folder with a Yosys that has one module, of whose synthesis COMMAND is
  mkdir -p "$1" && cat >"$1/yosys" <<YOSYS && chmod +x "$1/yosys"
#!/bin/sh
[ "\$1" = -V ] && echo Yosys 9.${#1} && exit
if grep -q design.v run.ys; then printf 'module \\\\spatial\nend\n' >all.il; else $2; fi
YOSYS
}
yosys_that answers "printf 'LUT6 123450\nFDRE 20\nRAMB18E1 10\n' >m0.txt"
# What these tools answer is kept beside nothing else: an earlier one's answer would be taken for this one's.
export TILEWRIGHT_CACHE_DIR=$PWD/cache
PATH="$PWD/answers:$PATH" exits 0 "the best on the simulator, the best of these by synthesis" "synth of 1 designs: area" "tsim of 2 designs" -- \
  "${fpga[@]}" -o fpga --fidelity tsim:2,synth:1
holds "rows of three levels" test "$(grep -oE '"level":"[a-z]+"' fpga/points.jsonl | sort -u | wc -l)" -eq 3
holds "its cells are the area" grep -q '"level":"synth".*"area":0.104' fpga/points.jsonl  # 123450 of 1182240
PATH="$PWD/answers:$PATH" exits 6 "a limit that it breaks" "area is" -- \
  "${fpga[@]}" -o fpga-limit --fidelity synth:1 --limit area=10%
holds "all were looked at" test "$(grep -c '"level":"synth"' fpga-limit/points.jsonl)" -eq 4
exits 3 "synthesis without cells" "hasco-fpga" -- codesign search net.onnx --space four.toml -o x --fidelity synth:1
mkdir old && printf '#!/bin/sh\necho Yosys 0.1\n' >old/yosys && chmod +x old/yosys
PATH="$PWD/old:$PATH" exits 7 "a Yosys that is too old" "0.1" -- "${fpga[@]}" -o x --fidelity synth:1

# A Yosys that somebody kills is an outcome of its design; one that Ctrl-C ends is none: the same line looks again.
yosys_that dies 'kill -9 $$'
PATH="$PWD/dies:$PATH" exits 6 "a Yosys that dies is counted" "'yosys' was killed" -- "${fpga[@]}" -o dead --fidelity synth:1
holds "for each design" test "$(grep -c '"level":"synth".*was killed' dead/points.jsonl)" -eq 4
interrupted_in_yosys() {
  local run begun=
  mkfifo begun && yosys_that waits "echo 1 >$PWD/begun; exec sleep 600" || return 1
  PATH="$PWD/waits:$PATH" "$program" "${fpga[@]}" -o ended --fidelity synth:1 >/dev/null 2>&1 &
  run=$!
  read -r -t "$limit" begun <>begun
  kill -INT $run
  wait $run
  test $? -eq 130 -a "$begun" = 1 -a "$(wc -l <ended/points.jsonl)" -eq 4 && ! grep -q interrupted ended/points.jsonl &&
    PATH="$PWD/answers:$PATH" "$program" "${fpga[@]}" -o ended --fidelity synth:1 >/dev/null 2>&1 &&
    test "$(grep -c '"level":"synth".*"feasible":true' ended/points.jsonl)" -eq 1
}
holds "Ctrl-C in Yosys loses nothing but that" interrupted_in_yosys
unset TILEWRIGHT_CACHE_DIR

# A limit between what the model says of a design and what the simulator does.
vta_search=(codesign search net.onnx --space vta --method random --evaluations 6 --fidelity tsim:6)
broken_at_a_level() {
  local limit
  "$program" "${vta_search[@]}" -o free >/dev/null 2>&1
  limit=$("$python" - <<'PY'
import json
rows = [json.loads(line) for line in open("free/points.jsonl")]
model = {row["number"]: row["latency"] for row in rows if row["level"] == "model"}
print(max((model[row["number"]] + row["latency"]) / 2 for row in rows
          if row["level"] == "tsim" and row["latency"] > model[row["number"]]))
PY
  )
  "$program" "${vta_search[@]}" -o limited --limit latency="$limit cycles" >/dev/null 2>&1
  "$python" - "$limit" <<'PY'
import csv, json, sys
rows = [json.loads(line) for line in open("limited/points.jsonl")]
tsim = [row for row in rows if row["level"] == "tsim"]
lost = {row["number"] for row in tsim if row["latency"] > float(sys.argv[1])}
models = [row for row in rows if row["level"] == "model"]
assert lost, "no design was lost"
assert len(models) == 6 + len(lost), (len(models), lost)  # the search went on
assert all(not row["feasible"] for row in models if row["number"] in lost)
front = list(csv.DictReader(open("limited/front.csv")))
assert front and not lost & {int(row["number"]) for row in front}
assert all(row["level"] == "tsim" for row in front)
PY
}
holds "what breaks a limit on the simulator is lost, and the search goes on" broken_at_a_level

holds "G1 it needs no other program" env PATH=/nonexistent "$program" codesign search net.onnx --space edge -o alone-here --evaluations 2
exits 0 "a warm start" "designs evaluated" -- "${search[@]}" -o warm --evaluations 8 --warm run
warm_first() {
  "$python" - <<'PY'
import csv, json
front = {row["number"] for row in csv.DictReader(open("run/front.csv"))}
best = {json.loads(line)["design"] for line in open("run/points.jsonl") if str(json.loads(line)["number"]) in front}
first = [json.loads(line)["design"] for line in open("warm/points.jsonl")][:2]
assert all(design in best for design in first)
PY
}
holds "a warm start begins with the other's best" warm_first
exits 0 "and takes no more than were asked for" "1 designs evaluated" -- \
  "${search[@]}" -o warm-one --evaluations 1 --warm run

for method in random nsga2 mobo; do
  exits 0 "$method" "12 designs evaluated" -- "${search[@]}" -o $method --method $method --evaluations 12
done

# Other ways to map: none is better than the mapper on a layer whose tiles it all looks at, and a study keeps its own.
mappers_differ() {
  for mapper in ours hasco random; do
    "$program" codesign eval design/hw.toml net.onnx --mapper $mapper --mapper-trials 80 --json >$mapper.json 2>/dev/null || return 1
  done
  "$program" codesign eval design/hw.toml net.onnx --choices one --json >one.json 2>/dev/null &&
    "$python" - <<'PY'
import json
latency = {name: json.load(open(name + ".json"))["latency"] for name in ("ours", "one", "hasco", "random")}
assert latency["ours"] <= min(latency.values()) and latency["ours"] < latency["random"], latency
assert json.load(open("hasco.json"))["mapper"] == "hasco, 80 trials, seed 0"
PY
}
holds "mappers find different mappings" mappers_differ
hasco=("${search[@]}" -o hasco --mapper hasco --mapper-trials 80 --evaluations 3)
exits 0 "a search with HASCO's mapper" "3 designs evaluated" -- "${hasco[@]}"
exits 0 "the same again" "going on after 3 evaluations" -- "${hasco[@]}"
exits 8 "its folder with another mapper" "mapper: here nothing, there hasco, 80 trials" -- "${search[@]}" -o hasco --evaluations 3
exits 2 "an unknown mapper" "did you mean 'hasco'" -- "${search[@]}" -o x --mapper hascoo

exits 8 "a folder of another search" "limits: here power=1000 mW" -- "${search[@]}" -o run --limit power=1W
exits 6 "a limit that nothing meets" "comes nearest: power is" -- "${search[@]}" -o none --evaluations 3 --limit power=1W
exits 2 "an unknown unit" "did you mean 'gemm'" -- codesign choices net.onnx --intrinsics gem
exits 2 "an unknown space" "did you mean 'edge'" -- codesign space edgy
exits 2 "an unknown objective" "did you mean 'latency'" -- "${search[@]}" -o x --objectives latencies
exits 2 "a limit without a unit" "power" -- "${search[@]}" -o x --limit power=2
exits 2 "an unknown method" "it takes random" -- "${search[@]}" -o x --method magic
exits 2 "a pick that is not on the front" "it takes knee" -- codesign front run --pick 999 -o y
exits 2 "no study there" "there is no search in" -- codesign front nowhere
printf 'kind = "space"\nname = "s"\nrows = 3\n[parameters]\nrow = [8, 16]\nbanks = { from = 4, to = 1 }\n' >bad.toml
exits 2 "G2 a space with several problems" "bad.toml:" "did you mean" -- codesign space bad.toml
printf 'kind = "spatial"\nrows = 0\ncolumns = 8\n' >bad-design.toml
exits 2 "G2 a design with several problems" "bad-design.toml:" "rows" "columns" -- codesign eval bad-design.toml net.onnx

# Bad input: all of it at once, with its place; and what cannot be.
printf 'kind = "space"\nname = "s"\ntecnology = "asic45"\n[parameters]\nrows = []\nbanks = { from = 8, to = 1 }\nspad_kb = { from = 64 }\n[fixed]\nintrinsic = "gem"\n' >bad.toml
exits 2 "G2 keys and ranges" "bad.toml:1:1" "bad.toml:3:13" "'technology'" "bad.toml:5:8" "no choices" "bad.toml:6:9" \
  "reversed: 8..1" "bad.toml:7:11" "to\` is missing" "bad.toml:9:13" "'gemv'" "cols\` is missing" -- codesign space bad.toml
space s '"gemm"' '' | sed 's/^\[parameters/rules = ["rows > 99"]\n&/' >bad.toml
exits 2 "a rule that nothing meets" "bad.toml:4:10" "rows > 99" -- codesign space bad.toml
space s '"gemm"' '' | sed 's/rows = .*/rows = [64]/; s/local_kb = 32/local_kb = 1/' >bad.toml
exits 2 "a step that does not fit" "local_kb of 1 KiB" "3.25 KiB more" -- codesign space bad.toml
printf 'kind = "spatial"\nintrinsic = "conv2d"\nlinks = "full"\nrows = 64\ncols = 64\nspad_kb = 8\nlocal_kb = 1\n' >small.toml
exits 3 "a design that is too small" "local_kb of 1 KiB" "KiB more" -- codesign eval small.toml net.onnx
space s '"gemm"' '' | sed 's/rows = .*/rows = { from = 1, to = 64 }/; s/spad_kb = .*/spad_kb = { from = 8, to = 4096 }/; s/banks = 4//; s/\[fixed/banks = { from = 1, to = 16 }\n&/' >big.toml
exits 6 "too many points to enumerate" "4187136 points" "days" -- codesign search net.onnx --space big.toml -o big --method enumerate
"$python" - <<'PY'
import numpy, onnx
from onnx import TensorProto, helper, numpy_helper
w = numpy_helper.from_array(numpy.ones((8, 16), numpy.float32), "w")
value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], name="mul")], "product",
                          [value("x", [4, 8])], [value("y", [4, 16])], [w])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), "product.onnx")
PY
exits 3 "a unit that matches no layer" "no layer of" "conv2d" "over 0 of its axes" -- \
  codesign search product.onnx --space hasco-conv2d -o x
sed 's/, source = "horowitz" }/ }/' "$here/../../hw/tech/asic45.toml" >mine.toml
space s '"gemm"' '' | sed 's/"asic45"/"mine.toml"/' >bad.toml
exits 2 "numbers without source" "mine.toml:21:19" "multiply_energy\` has no source" "add_energy" -- codesign space bad.toml
cp "$here/../../hw/tech/asic45.toml" own.toml
space own '"gemm"' '' | sed 's/"asic45"/"own.toml"/' >own-space.toml
exits 0 "a technology of one's own" "area (um2)" -- codesign search product.onnx --space own-space.toml --evaluations 2 -o own
exits 0 "its front, with units" "area (um2)" -- codesign front own
space four '"gemm", "gemv", "dot", "conv2d"' '' | sed 's/banks = 4/banks = 2/' >four.toml
exits 8 "a folder of a space that was changed" "space: here four, 16 points" -- codesign search net.onnx --space four.toml -o four
exits 8 "a warm start from another space" "space: here edge" -- "${search[@]}" -o x --warm vta
exits 2 "an unknown level" "tsim:8" -- "${search[@]}" -o x --fidelity rtl:2
exits 2 "a limit in another unit" "shares of a device" -- "${search[@]}" -o x --limit area=2mm2
finish
