# tables.slang: SLOPE SOURCE TEMPORARY. What is written is read again.
slope=$1 source=$2 t=$3
run() { "$slope" run "$source" -w "$@" 2>&1 | sed "s|$t|T|g"; }
printf '\357\273\277x, y, n, on\r\n1, 2, 3, true\r\n\r\n# a comment\r\n3,4.5,-2,false\r\n' > $t.samples.csv
printf '1,2\n3,4\n' > $t.numbers.csv
printf '0,0\n7,8' > $t.two.csv
run --bind samples=@$t.samples.csv --bind numbers=@$t.numbers.csv --bind matrices=@$t.numbers.csv --bind pairs=@$t.two.csv \
    --bind raw=1,2 --save samples=@$t.out.csv --save pairs=@$t.pairs.csv --save raw=@$t.raw.csv
cat $t.out.csv $t.pairs.csv $t.raw.csv
run --bind samples=@$t.out.csv > /dev/null || echo failed
printf '1,2\nx,4\n' > $t.bad.csv
run --bind numbers=@$t.bad.csv
printf 'a,b\n1,2\n3\n' > $t.ragged.csv
run --bind numbers=@$t.ragged.csv
printf '1,2,3\n4,5,6\n' > $t.pairs.csv
run --bind samples=@$t.pairs.csv
printf 'only,names\n' > $t.empty.csv
run --bind numbers=@$t.empty.csv
printf '1\0002' > $t.bytes.csv
run --bind numbers=@$t.bytes.csv
run --bind numbers=@$t.none.csv
{ printf "\223NUMPY\001\000\166\000{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }%58s\n" ''; printf '\000\000\000\000%.0s' 1 2 3; printf '\000\000\300\100%.0s' 1 2 3; } > $t.wide.npy
run --bind pairs=@$t.wide.npy
run --bind numbers=@$t.wide.npy
{ printf "\223NUMPY\001\000\166\000{'descr': '|u-1', 'fortran_order': False, 'shape': (1,), }%60s\n" ''; head -c 5000 /dev/zero; } > $t.size.npy
run --bind raw=@$t.size.npy
