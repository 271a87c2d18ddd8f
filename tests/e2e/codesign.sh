#!/usr/bin/env bash
# Co-design as docs/codesign.md walks through it, on a small network; kills in the middle, and bad input.
# codesign.sh PROGRAM
source "$(dirname "$0")/lib.sh"
search=(codesign search net.onnx --space edge)

holds "a network" "$program" -q zoo resnet18 --size 32 -o net.onnx
exits 0 "choices of layers" "k=c of input, weights" "conv2d" "none" -- codesign choices net.onnx
exits 0 "a space" "14976 points" "power at most 2000 mW" -- codesign space edge
exits 0 "a search" "latency" "power" "area" "knee" -- "${search[@]}" -o run --evaluations 12
holds "a search leaves its files" test -s run/study.sqlite -a -s run/points.jsonl -a -s run/front.csv -a -s run/report.html
holds "a row per evaluation" test "$(wc -l <run/points.jsonl)" -eq 12
exits 0 "its front" "knee" -- codesign front run
exits 0 "a design" "design/hw.toml" -- codesign front run --pick min:latency -o design
exits 0 "a design on a model" "units busy" "area" -- codesign eval design/hw.toml net.onnx

# The evaluation of a point is the same by whatever way it is asked for.
same_latency() {
  "$program" codesign eval design/hw.toml net.onnx --technology hasco-fpga --json >eval.json 2>/dev/null &&
    "$python" - <<'PY'
import csv, json
least = min(float(row["latency"]) for row in csv.DictReader(open("run/front.csv")))
assert abs(json.load(open("eval.json"))["latency"] - least) < 1e-6 * least
PY
}
holds "eval says of a picked design what the search did" same_latency

# Fewer evaluations and the rest later are the same as all at once.
"$program" "${search[@]}" -o parts --evaluations 5 >/dev/null 2>&1
exits 0 "a search goes on" "going on after 5 evaluations" -- "${search[@]}" -o parts --evaluations 12
holds "in parts as at once" cmp run/front.csv parts/front.csv

# Whatever is killed whenever: the same line again ends where one run ends.
killed_and_gone_on() {
  for wait in 0.05 0.1 0.2 0.4 0.8; do
    "$program" "${search[@]}" -o killed --evaluations 12 >/dev/null 2>&1 &
    sleep "$wait"
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
  done
  "$program" "${search[@]}" -o killed --evaluations 12 >/dev/null 2>&1 && cmp run/front.csv killed/front.csv
}
holds "kill -9 loses nothing that was kept" killed_and_gone_on

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
exits 2 "no study there" "cannot open" -- codesign front nowhere
printf 'kind = "space"\nname = "s"\nrows = 3\n[parameters]\nrow = [8, 16]\nbanks = { from = 4, to = 1 }\n' >bad.toml
exits 2 "a space with several problems" "bad.toml:" "did you mean" -- codesign space bad.toml
printf 'kind = "spatial"\nrows = 0\ncolumns = 8\n' >bad-design.toml
exits 2 "a design with several problems" "bad-design.toml:" "rows" "columns" -- codesign eval bad-design.toml net.onnx
finish
