/* What the two files that print the checked tree share. */
#ifndef SLOPE_CHECK_PRINT_H
#define SLOPE_CHECK_PRINT_H

#include "check/checker.h"

typedef struct Callee {
    Decl *decl;
    const Subst *subst;
} Callee;

typedef struct CheckPrinter {
    Checker *c;
    Text *out;
    int indent;
    VEC(Callee) callees; /* of the statement that is being printed, each once */
} CheckPrinter;

/* `nested`: as an operand, so that operators need parentheses. */
void print_checked_expr(CheckPrinter *p, const Expr *e, bool nested);

#endif
