#!/usr/bin/env bash
# Inputs and outputs of `run`: arrays in all forms NumPy writes, archives, images, classes.
# inputs.sh PROGRAM
source "$(dirname "$0")/lib.sh"
"$python" "$here/inputs_files.py" write || exit 1
exits 0 "a package, so that runs are quick" "" -- compile two.onnx -o two.twm
exits 0 "another" "" -- compile image.onnx -o image.twm
two=(run two.twm)

exits 0 "Fortran order" p.npy -- "${two[@]}" --input a=@a.npy --input b=@b.npy --output-dir named
exits 0 "inputs in turn" -- "${two[@]}" --input @a.npy --input @b.npy --output-dir turn
exits 0 "inputs by number" -- "${two[@]}" --input 1=@b.npy --input 0=@a.npy --output-dir numbers
exits 0 "an archive" -- "${two[@]}" --input @ab.npz --output-dir archive
exits 0 "an archive without names" -- "${two[@]}" --input @turn.npz --output-dir in_turn
exits 2 "two outputs are no folder" "p=y.npy" --output-dir -- "${two[@]}" -o y.npy
holds "nothing is made" test ! -e y.npy
exits 0 "outputs by name" p.npy q.npy -- "${two[@]}" --input @ab.npz --output p=p.npy --output 1=q.npy
exits 0 "outputs in an archive" y.npz -- "${two[@]}" --input @ab.npz -o y.npz
exits 2 "a name without a format" --output-dir -- "${two[@]}" -o out
exits 3 "f64 is not cast unasked" f64 "--cast" -- "${two[@]}" --input a=@a64.npy
exits 0 "--cast" -- "${two[@]}" --input a=@a64.npy --input b=@b.npy --cast --output-dir cast
exits 3 "a value that f32 cannot hold" "1e+300" f32 -- "${two[@]}" --input a=@huge.npy --cast
exits 3 "another shape" "[6]" "[2, 3]" reshape -- "${two[@]}" --input a=@flat.npy
exits 3 "arrays of other names" "c, d" -- "${two[@]}" --input @other.npz
exits 2 "an input twice" twice -- "${two[@]}" --input a=zeros --input 0=ones
exits 2 "a number too high" "counted from 0" -- "${two[@]}" --input 2=ones
exits 2 "a file of another kind" ".npy, .npz, .png or .jpg" -- "${two[@]}" --input a=@labels.txt
exits 0 "made-up inputs are said" "note: " "inputs a, b" -- "${two[@]}"
holds "and not where there are none" bash -c \
  '! "$0" run two.twm --input @ab.npz 2>&1 | grep note' "$program"

exits 0 "PNG" -- run image.twm --input @cat.png -o raw.npy
exits 0 "--mean and --scale" -- run image.twm --input x=@cat.png --mean 100,50,25 --scale 1/255 -o normal.npy
exits 3 "an image of another size" "16 wide and 8 high" "--resize" -- run image.twm --input @cat.jpg
exits 0 "JPEG" -- run image.twm --input @cat.jpg --resize -o jpeg.npy
exits 3 "the wrong layout" "the input 2 and 3" -- run image.twm --input @cat.png --layout nhwc
exits 2 "a truncated PNG" cut.png -- run image.twm --input @cut.png
exits 2 "a truncated JPEG" cut.jpg -- run image.twm --input @cut.jpg
exits 2 "a mean that is no number" "--mean" -- run image.twm --input @cat.png --mean grey
holds "the results are NumPy's" "$python" "$here/inputs_files.py" check

exits 0 "--top" bee dog -- run scores.onnx --input @s.npy --top 2 --labels labels.txt
holds "no others" bash -c '! grep -qE "ant|cat" .log'
head -n 3 labels.txt > few.txt
exits 3 "labels for other classes" "3 labels" "4 classes" -- run scores.onnx --input @s.npy --top 1 --labels few.txt
exits 3 "no scores" "no scores of classes" -- run image.twm --top 1
finish
