# losses-in-a-sum.slang: SLOPE TEMPORARY
slope=$1 t=$2
begin() { echo 'float f(float x) { return x; }'; echo '[Differentiable] float g(float x) { float s = f(x), t;'; }
checked() { "$slope" check $t.slang --limit-memory 100 --error-limit 1 2> $t.err; echo $?; grep -c 'goes into' $t.err; }
(begin; yes 's += f(x);' | head -10000; echo 'return s; }') > $t.slang
checked
(begin; yes 't = s; s = t;' | head -10000; echo 'return s; }') > $t.slang
checked
