# pictures.slang: SLOPE SOURCE TEMPORARY. Each file that is written is the input of the next run.
slope=$1 source=$2 t=$3
run() { "$slope" run "$source" "$@" 2>&1 | sed "s|$t|T|g"; }
run --bind image=zeros:4x2 --bind pairs=zeros:2 --save image=@$t.png --save pairs=@$t.npy
run --bind image=@$t.png --bind pairs=@$t.npy --save image=@$t.pfm
run --bind image=@$t.pfm --bind pairs=@$t.npy --save image=@$t.image.npy
run --bind image=@$t.image.npy --bind pairs=@$t.npy
run --bind counts=@$t.npy
run --bind pairs=@$t.png
run --bind pairs=zeros:2 --save pairs=@$t.pfm
run --bind image=@$t.none.png
echo nothing > $t.bad.npy
run --bind image=@$t.bad.npy
run --bind image=@$t.txt
run --bind image=zeros:0x4
run --bind image=1,2,3
run --bind s=smooth
