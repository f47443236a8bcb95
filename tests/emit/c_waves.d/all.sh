# all.sh SLOPE TEMPORARY PROGRAM
slope=$1 t=$2 d=$PWD
flags="-Wall -Wextra -Werror"
numbers="0.5,-1,2,0.25,1.5,1,-0.5,0.75,-0.1,3,1.25,-2"

# main GROUPS NAME: the C in t.c with its buffers
main() {
    cat > $t.main.c <<C
#include "$t.c"
int main(void) {
    static float n[] = {$numbers}, o[180];
    numbers.data = n; numbers.count = 12; out.data = o; out.count = 180;
    $2($1, 1, 1);
    for (int i = 0; i < 60 * $1; i++) printf("%.9g\n", (double)o[i]);
    return 0;
}
C
}

$slope build $3 --fp strict -target c -entry kernel -o $t.c && main 2 kernel
for way in "5 gcc -std=c17 -O0 -fsanitize=address,undefined" "32 clang -std=c17 -O0" "1 g++ -std=c++17 -O0 -x c++" "4 gcc -std=c17 -O1"; do
    wave=${way%% *}
    with="--fp strict -entry kernel --dispatch 2 --wave $wave --bind numbers=$numbers --bind out=zeros:120 --print out"
    $slope run $3 $with --interpret > $t.wanted
    $slope run $3 $with --threads 1 > $t.code
    ${way#* } $flags -DSLOPE_WAVE=$wave $t.main.c -o $t -lm && $t > $t.found || exit 1
    paste -d' ' $t.wanted $t.code $t.found | awk '
        function far(a, b) { return (a - b > 2e-5 * (b < 0 ? -b : b) || b - a > 2e-5 * (b < 0 ? -b : b)) && !(a ~ /nan/ && b ~ /nan/) }
        far($1, $3) || far($2, $3) { print NR ": " $0; wrong++ }
        END { print NR " numbers, " wrong + 0 " differ" }'
done
main 3 kernel
gcc -std=c17 $flags $t.main.c -o $t -lm && $t 2>&1 | tail -1

cd ../run/wave
for name in functions waiting-and-equality; do
    $slope build $name.slang -target c -entry kernel --header $t.h -o $t.c && printf '#include "%s"\nint main(void) { kernel(1, 1, 1); return 0; }\n' $t.c > $t.main.c &&
        gcc -std=c17 $flags -DSLOPE_WAVE=4 $t.main.c -o $t -lm && $t
done
$slope build functions.slang -target c -f alone -o $t.c && printf '#include "%s"\nint main(void) { alone(); return 0; }\n' $t.c > $t.main.c && gcc -std=c17 $flags $t.main.c -o $t -lm && $t
