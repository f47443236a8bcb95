/* The pipeline's own: what a program is while it goes through the stages. */
#ifndef SLOPE_UNIT_H
#define SLOPE_UNIT_H

#include "driver/driver.h"
#include "emit/emit.h"
#include "lower/lower.h"

typedef struct Pipeline {
    const EmitBackend *backends[EMIT_BACKENDS]; /* NULL: not asked for yet */
    EmitSpare spare;                            /* of machine code */
    Library *library;                           /* what programs share of the prelude ... */
    Syntax *syntax;                             /* ... and what that was read with */
    EmitCache cache;                            /* see unit_cache */
} Pipeline;

/* A function as it was before the passes, which inline what has a derivative of its own. */
typedef struct Written {
    Func *func;
    Region *body;
    uint32_t flags;
} Written;

/* A kernel that keeps sums, all that it can but for those whose bits are in `large`. */
typedef struct SumForm {
    const Func *kernel;
    uint64_t large;
    Func *form;
} SumForm;

typedef struct Unit {
    SlopeProgram *program;
    Syntax syntax;
    Checker *checker;
    Decl *module; /* of the program's own file */
    bool checked;
    bool has_failed; /* some function has: FUNC_FAILED */
    int errors;      /* after checking */
    Module *ir;
    Lowerer *lowerer;
    Map entries;           /* Decl -> Func */
    Map files;             /* resolved path -> Name, the one that the file goes by */
    int passed;            /* functions that went through the passes */
    int legalized;         /* ... and have nothing in them that backends lack: */
    uint32_t legal_for;    /* BackendLacks */
    VEC(Written) written;  /* ... as they were before */
    bool is_checked_later; /* by what compiles the output: indices into buffers and arrays */
    bool is_source;        /* what is made of it is read by people ... */
    bool has_no_pointers;  /* ... and passes everything by value */
    bool has_no_lanes;     /* what is made of it knows only vectors of the language */
    EmitJit *jit;
    bool runs;       /* machine code is made of it that runs at once */
    bool keeps_sums; /* kernels will be run by our runtime, which gives them copies of buffers to add to */
    VEC(SumForm) sum_forms;
    Text *dump; /* what a stage of autodiff leaves is shown here */
    const char *dump_stage;
} Unit;

/* ---- carried.c */
int64_t unit_most_carried(void *user, Func *func); /* for lowering */

/* ---- pipeline.c */
/* Takes all functions that were lowered since the last call through the passes, up to `stop` (NULL: all). */
bool unit_is_ad_stage(const char *stage);
bool unit_run_passes(Unit *unit, const char *stop);
SlopeStatus unit_derive(Unit *unit, const char *stop); /* lowered and differentiated; error: reported */
SlopeStatus unit_prepare(Unit *unit,
                         const char *stop); /* lowered, differentiated, optimised; error: reported */
/* Of a function, or of all that anyone has asked for (NULL): an error if it could not be lowered or
 * differentiated. */
SlopeStatus unit_refuse_failed(const Unit *unit, const Func *func);
/* The form of a kernel that is compiled in its place. NULL: itself is, or that form was not asked for yet. */
Func *unit_sum_form(const Unit *unit, const Func *kernel, uint64_t large);
/* Makes it. NULL: nothing can be kept, and none was too large. */
Func *unit_keep_sums(Unit *unit, Func *kernel, uint64_t large);
void unit_legalize(Unit *unit, uint32_t lacks); /* all that went through the passes */
void unit_inline_waiting(Unit *unit); /* for targets without barriers: into the kernels that come to them */

/* ---- front.c */
/* The declaration that an expression names: "f", "Camera.project". */
SlopeStatus driver_find_declaration(SlopeProgram *program, const char *expression, CheckedFunction *out);
SlopeStatus unit_check(Unit *unit);
Expr *unit_parse(Unit *unit, const char *expression); /* NULL after an error */

/* ---- cache.c */
const EmitCache *unit_cache(SlopeSession *session); /* NULL: none is wanted, or there is no place for it */

/* ---- declared.c */
const char *unit_qualified_name(Unit *unit, Decl *decl); /* "Camera.project" */
bool unit_is_generic(const Decl *decl);                  /* it, or what it is in */

#endif
