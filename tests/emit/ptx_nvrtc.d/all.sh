# all.sh SLOPE FAKES TEMPORARY FILE
export LD_LIBRARY_PATH=$2 CUDA_HOME= FAKE_LOG=$3.log
rm -f "$FAKE_LOG" "$3.ptx"
$1 build "$4" -target ptx-nvrtc --fp strict -o "$3.ptx"; echo "status $?"
grep -c "__global__" "$3.ptx"; grep "^__constant__" "$3.ptx"; grep -- -- "$FAKE_LOG"
rm -f "$3.ptx"
FAKE_FAIL=nvrtcCompileProgram:6 $1 build "$4" -target ptx-nvrtc -o "$3.ptx"; echo "status $?"
test -e "$3.ptx" && echo "it was written"
$1 build "$4" -target ptx-nvrtc --header "$3.h" -o "$3.ptx"; echo "status $?"
