#!/bin/sh
# Recovers a scene from a picture of it, with examples/scene.c: the pictures and the error as it falls, then what was found beside the truth.
# Usage: scripts/demo.sh BUILD
set -eu
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../examples"
cc -std=c17 -O1 scene.c -o "$build/scene" -I../include -L"$build" -lslope -lm -Wl,-rpath,"$build"
text=$([ -t 1 ] || echo --text)
"$build/scene" $text --save "$build/scene.txt"
python3 ../scripts/pictures.py --demo "$build/scene.txt" "$build/pictures"
printf '\nThe kernels are in examples/scene.slang; more programs of this kind are in examples/README.md.\n'
