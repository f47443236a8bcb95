# Each of n variables takes the value of the next, in a loop.
BEGIN {
    print "float plain(float x) { return x; }"
    print "[Differentiable] float f(float x, int n) {"
    for (i = 0; i < n; i++) print "float a" i " = 0;"
    print "for (int i = 0; i < n; i++) {"
    for (i = 0; i < n - 1; i++) print "a" i " = a" i + 1 ";"
    print "a" n - 1 " = plain(x); }"
    print "return a0; }"
}
