# all.sh SLOPE FAKES TEMPORARY FILE
slope=$1 file=$4
export LD_LIBRARY_PATH=$2 CUDA_HOME= FAKE_LOG=$3.log
run() { $slope run --device cuda "$file" --bind given=1,2,3 --bind kept=5,6,7 --set scale=2 --dispatch 4 --print kept "$@"; echo "status $?"; }
rm -f "$FAKE_LOG"
echo "# all is well"; run; grep -v Stream "$FAKE_LOG" | uniq
echo "# what a kernel prints"; FAKE_KERNEL=print run
echo "# what it says when it aborts"; FAKE_KERNEL=abort run
echo "# memory for tapes grows, and has a limit"; rm "$FAKE_LOG"; FAKE_KERNEL=tape run; grep -c cuLaunchKernel "$FAKE_LOG"; FAKE_KERNEL=tape run --tape 50
mkdir -p "$3.d"; : > "$3.d/libcuda.so.1"
echo "# no driver"; LD_LIBRARY_PATH=$3.d run 2>&1 | sed 's/: [^ ]*libcuda.so.1: .*/: .../'
echo "# no device"; FAKE_DEVICES=0 run; FAKE_FAIL=cuInit:100 run
echo "# no memory"; FAKE_FAIL=cuMemAlloc_v2:2:2 run
echo "# no code"; FAKE_FAIL=nvrtcCompileProgram:6 run
echo "# a launch that fails"; FAKE_FAIL=cuLaunchKernel:999 run
echo "# a kernel that does not end"; FAKE_KERNEL=endless timeout -s INT 0.3 $slope run --device cuda "$file"; echo "status $?"
echo "# devices that do not exist"; $slope run --device tpu "$file"; echo "status $?"; $slope run --device cuda:7 "$file"; echo "status $?"
echo "# by LLVM: PTX, which the driver loads"; rm "$FAKE_LOG"; mkdir -p "$3.i"; FAKE_IMAGES=$3.i $slope run --device cuda --device-code llvm device.d/plain.slang --bind kept=5,6 --print kept; echo "status $?"; grep -c nvrtc "$FAKE_LOG"; grep -h "^.target\|^.visible .entry" "$3.i"/*
echo "# ... and which is kept for the next run"; for i in 1 2; do $slope run --device cuda --device-code llvm --cache "$3.c" --time device.d/plain.slang --bind kept=5,6 2>&1 | grep -c 'LLVM passes  *0.000'; done
echo "# who makes no code"; $slope run --device cuda --device-code ptxas "$file"; echo "status $?"
echo "# what only the CPU does"; $slope run --device cuda --strict "$file"; echo "status $?"; $slope run --device cuda --interpret "$file"; echo "status $?"
