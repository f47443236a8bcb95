# all.sh SLOPE TEMPORARY FILE
export SLOPE_LIBDEVICE=/nowhere/libdevice.10.bc
for entry in plain waving telling large; do
    rm -f "$2.ptx"
    $1 build "$3" -target ptx --entry $entry -o "$2.ptx"
    echo "$entry: status $?, $(test -e "$2.ptx" && echo written || echo not written)"
done
