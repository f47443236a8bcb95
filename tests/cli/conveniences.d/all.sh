slope=$1 source=$2 place=$3
printf '%s\n' 'void main() { printf("hello\n"); }' | "$slope" run -
echo 'void main() { x = 1; }' | "$slope" check - 2>&1 | head -1
"$slope" run -h | head -1
"$slope" version
"$slope" chekc "$source"
"$slope" run "$source" --bnd x=1
"$slope" run "$source" --entry stp
"$slope" run "$source" --entry step --bind data=range:2 --print data
"$slope" run "$source" --entry step --bind data=random:2 --bind counts=ones:2 --print counts
"$slope" run "$source" --entry step --bind data=ones:x
"$slope" run "$source" --entry step --bind data=zeros:9999999999999; echo $?
"$slope" build "$source" -o "$place.so" && head -c 4 "$place.so" | tail -c 3; echo
"$slope" build "$source" -target c -o - | head -1
