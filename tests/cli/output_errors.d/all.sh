slope=$1 source=$2 place=$3
mkdir "$place"
{
"$slope" run "$source" --bind data=zeros:1 > /dev/full; echo $?
"$slope" help > /dev/full; echo $?
{ { sleep 0.1; "$slope" run "$source" --bind data=zeros:1; echo $? >&2; } | true; } 2>&1
{ { sleep 0.1; "$slope" help; echo $? >&2; } | true; } 2>&1
"$slope" run "$source" --bind data=zeros:1 --save "data=@$place/none/x" --save data=@/dev/full --save "data=@$place/data" > "$place/out"; echo $?
"$slope" run "$source" --bind "data=@$place/data" --print data | tail -1
ls "$place" | grep -c part
} 2>&1 | sed "s#$place#T#"
