/* slope dump --after check. */
#include "check/checker.h"

void check_print(Text *out, Checker *c, const Decl *module) {
    (void)c;
    syntax_print(out, module);
}
