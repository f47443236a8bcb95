/* What the files of opt/together share; together.c says what they do. */
#ifndef SLOPE_OPT_TOGETHER_H
#define SLOPE_OPT_TOGETHER_H

#include "opt.h"

enum { MOST_TOGETHER = 16 }; /* rounds */

/* A loop whose rounds are to be made together. */
typedef struct Rounds {
    Func *func;
    Arena *scratch;
    Memory memory;
    Inst *loop;
    bool guesses;                /* before calls are inlined: that they do nothing but to their operands */
    const struct Rounds *caller; /* of a function that is looked into */
    int left; /* guesses: instructions that are still looked at; below 0: there are too many */
    /* by id of values, as they are before anything is made */
    uint32_t nids;
    bool *varies; /* it is not the same in all rounds; of a variable or tape: each round has its own */
    bool *late;   /* it is made by what is done round by round */
    Map written;  /* keys of objects outside of the loop that it writes */
    bool writes_unknown;
    bool leaves;  /* by a jump */
    bool changed; /* the analysis found something new */
    /* what it would bring */
    double shared, repeated; /* work that is done once, or for each round */
    double ahead;            /* of what is shared: what can go in front of the loop */
    double counted;          /* of what is shared: counters of loops, their tests, and indices */
    int64_t copies;          /* instructions that there will be of for each round */
    bool keeps;              /* each round has something of its own on a tape */
} Rounds;

/* ---- together_vary.c */
void rounds_analyse(Rounds *r);
bool rounds_count(const Inst *loop, int index); /* is it known what it carries there in each round? */
bool rounds_is_late(const Rounds *r,
                    const Inst *inst); /* of the loop's body: done round by round, at the end */
bool rounds_vary(const Rounds *r, const Val *v);
bool rounds_vary_in(const Rounds *r,
                    const Inst *inst);               /* in its operands and results, or in what it contains */
bool rounds_part(const Rounds *r, const Inst *inst); /* may they take different ways through it? */
/* What a function (r->func) does `often` times, of which those parameters vary; apart: all of it does. */
void rounds_weigh_func(Rounds *r, const bool *varies, double often, bool apart);

/* ---- together_make.c */
void rounds_make(Rounds *r, int count); /* instead of the loop */

#endif
