#!/bin/sh
# Runs every program of examples/ by the line `// run: ...` at its top, and shows both.
# Usage: scripts/demo.sh BUILD
set -eu
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../examples"
PATH="$build:$PATH"
for file in *.slang; do
    line=$(sed -n 's|^// run: ||p' "$file")
    [ -n "$line" ] || continue
    printf '\n$ %s\n' "$line"
    sh -c "$line"
done
