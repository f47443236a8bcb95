# 24 loops in one another; each adds up what is inside.
BEGIN {
    print "float plain(float x) { return x; }"
    print "[Differentiable] float f(float x, int n) { float z0 = 0;"
    for (i = 1; i <= 24; i++) print "for (int i" i " = 0; i" i " < n; i" i "++) { float z" i " = 0;"
    print "z24 += plain(x);"
    for (i = 24; i > 0; i--) print "z" i - 1 " += z" i "; }"
    print "return z0; }"
}
