/* The compiler, read from top to bottom: which passes a function goes through, in which order.
 *
 * syntax and check come first (front.c), lowering follows demand. Then every function that was lowered goes
 * through the passes of the table. It is verified before the first and after the last, in debug builds after
 * each; a function that is malformed is reported and closes the program, so that no code is made of it.
 * `slope dump --after NAME` stops behind a pass. */
#include "driver/unit.h"

#include <limits.h>

#include "autodiff/autodiff.h"
#include "opt/opt.h"

/* Functions in which the threads of a wave meet are inlined at every level: each call is another place. */
static bool pass_waves(Func *func) {
    return func->module->has_waves && opt_inline(func, (InlinePolicy){.max_size = 0});
}

enum {
    MOST_INLINED = 40,
    MOST_EACH = 1000,
    MOST_INLINED_ONCE = 1500,
    MOST_OF_KERNEL = 2500,
    SHORT = 150
}; /* instructions */

/* Where hundreds of functions call each other, each would take in as much as it may, and the same over and
 * over: once copies are many, and more than several times what there was, only callees are copied that are
 * short with all that they call. */
typedef struct Plenty {
    int64_t many, times;
} Plenty;

static int most_of_each(const Module *module, Plenty plenty, int most) {
    return module->inlined < plenty.many + plenty.times * module->written ? most : SHORT;
}

static void begin_copying(Module *module, int first) {
    module->inlined = module->written = 0;
    for (int i = first; i < module->funcs.count; i++)
        if (module->funcs.at[i]->body) module->written += region_size(module->funcs.at[i]->body);
}

/* On a GPU, what a kernel calls in one place becomes a part of it: then it is seen which buffers gradients
 * are added to. What that brings in may be called in one place again, and so on; NVIDIA's compiler needs
 * minutes for what is too large. */
static bool is_for_kernel(void *user, const Func *callee, const Inst *call) {
    Region *kernel = call->func->body;
    (void)user;
    if ((callee->flags & FUNC_INLINE) || region_size(callee->body) <= MOST_INLINED) return true;
    return region_calls(kernel, callee) == 1 && region_size(kernel) <= MOST_OF_KERNEL;
}

/* In long chains of calls each function takes in the next few; of tens of thousands the copies would fill the
 * memory. Where each calls two others, copies double with each step: a callee that would become too long is
 * left to take in what it calls itself. */
static bool pass_inline(Func *func) {
    const int64_t growth = 2000000;
    const Plenty plenty = {.many = 10000, .times = 5};
    InlinePolicy policy = {.max_size = MOST_INLINED, .max_growth = growth, .any_form = true};
    policy.max_each = most_of_each(func->module, plenty, MOST_EACH);
    if (func->module->many_threads && func->group_size[0] > 0) {
        policy.max_size = MOST_INLINED_ONCE;
        policy.may = is_for_kernel;
    }
    return opt_inline(func, policy);
}

/* ---- halves of derivatives */

typedef struct Halves {
    Arena *scratch;
    Map calls; /* Func -> how many */
    bool by_address;
} Halves;

static void count_call(void *user, Inst *inst) {
    Halves *halves = user;
    if (inst->op != OP_call) return;
    uintptr_t before = (uintptr_t)map_get(&halves->calls, PTR_KEY(inst->callee));
    map_put(halves->scratch, &halves->calls, PTR_KEY(inst->callee), (void *)(before + 1));
}

/* What a half is given by address it is told to be alone (emit/alone.c), which is lost in a part. */
static bool is_half(void *user, const Func *callee, const Inst *call) {
    const Halves *halves = user;
    bool is_own = (callee->flags & FUNC_GENERATED) && !(callee->flags & FUNC_EXPORT);
    (void)call;
    for (int i = 0; i < callee->nparams && !halves->by_address; i++)
        is_own &= !(callee->params[i].flags & PARAM_BY_ADDRESS);
    return is_own && (uintptr_t)map_get(&halves->calls, PTR_KEY(callee)) == 1;
}

/* In source code the way there and the way back of a derivative are parts of it, if they are called in one
 * place: to hand over all that is kept, each would need a struct for its results and as many parameters. */
static bool pass_halves(Unit *unit) {
    if (!unit->is_source || unit->ir->many_threads) return false;
    Halves halves = {.scratch = arena_scratch(unit->ir->arena), .by_address = unit->has_no_pointers};
    InlinePolicy policy = {.max_size = MOST_INLINED_ONCE, .may = is_half, .user = &halves, .any_form = true};
    bool changed = false;
    for (int i = 0; i < unit->ir->funcs.count; i++)
        if (unit->ir->funcs.at[i]->body) region_walk(unit->ir->funcs.at[i]->body, count_call, &halves);
    for (int i = unit->passed; i < unit->ir->funcs.count; i++)
        changed |= opt_inline(unit->ir->funcs.at[i], policy);
    arena_free(halves.scratch);
    return changed;
}

/* Copies of a loop's body have indices that are known, and arrays with nothing but such indices are
 * variables. */
static bool pass_unroll(Func *func) {
    if (!opt_unroll(func)) return false;
    opt_simplify(func);
    opt_sroa(func);
    opt_ssa(func);
    return true;
}

/* If rounds have too little in common to be made together, what is called stays where it is. What they have
 * in common stays in the loop until that is known. */
static bool make_together(Func *func) {
    if (!opt_may_be_together(func)) return false;
    Region *body = func->body;
    uint32_t flags = func->flags;
    CloneMap map = {.module = func->module, .func = func};
    func->body = clone_region(&map, body, NULL);
    if (opt_inline_together(func)) {
        opt_clean_in_place(func, (SroaOptions){0});
        opt_dce(func);
    }
    if (opt_together(func)) {
        opt_clean(func, (SroaOptions){0});
        return true;
    }
    func->body = body;
    func->flags = flags;
    return false;
}

/* Loops over seeds. */
static bool pass_together(Func *func) { return !(func->flags & FUNC_GENERATED) && make_together(func); }

static bool pass_sink(Func *func) {
    enum { MANY_BRANCHES = 64 };
    return opt_sink(func, MANY_BRANCHES);
}

/* Loops of a derivative are mostly those that its function had. Rounds of them at once are less than what a
 * loop around all of it gains by lanes, which then find too much: what is left when those are done. */
static bool pass_rows(Func *func) { return (func->flags & FUNC_GENERATED) && make_together(func); }

/* Derivatives in several directions, call by call. What they call may have siblings then. */
static bool pass_siblings(Func *func) {
    const int most_rounds = 3;
    int round = 0;
    while (round < most_rounds && opt_inline_siblings(func)) {
        opt_clean(func, (SroaOptions){0});
        round++;
    }
    return round > 0;
}

/* What two ifs have in common may decide others. */
static bool pass_asked(Func *func) {
    const int most_rounds = 4;
    int round = 0;
    while (round < most_rounds && opt_asked(func)) {
        opt_simplify(func);
        opt_cse(func);
        opt_dce(func);
        round++;
    }
    return round > 0;
}

static bool pass_parts(Func *func) {
    if (func->module->many_threads || !opt_inline_parts(func)) return false;
    opt_clean(func, (SroaOptions){0});
    return true;
}

static bool pass_nests(Func *func) {
    if (func->module->many_threads || !opt_inline_in_loops(func)) return false;
    opt_clean(func, (SroaOptions){0});
    return true;
}

#ifdef NDEBUG
enum { VERIFY_EACH_PASS = false };
#else
enum { VERIFY_EACH_PASS = true };
#endif

static void verify(Unit *unit, const Func *func, const char *pass) {
    Arena *scratch = arena_scratch(unit->ir->arena);
    const char *wrong = ir_verify(scratch, func);
    if (wrong) arena_malformed(scratch, format_text(unit->ir->arena, "after %s: %s", pass, wrong));
    arena_free(scratch);
}

/* ---- kernels that keep sums */

Func *unit_sum_form(const Unit *unit, const Func *kernel, uint64_t large) {
    for (int i = 0; i < unit->sum_forms.count; i++) {
        const SumForm *known = &unit->sum_forms.at[i];
        if (known->kernel == kernel && known->large == large) return known->form;
    }
    return NULL;
}

/* What it is a form of; NULL: it is none. */
static const Func *original_of(const Unit *unit, const Func *form) {
    for (int i = 0; i < unit->sum_forms.count; i++)
        if (unit->sum_forms.at[i].form == form) return unit->sum_forms.at[i].kernel;
    return NULL;
}

Func *unit_keep_sums(Unit *unit, Func *kernel, uint64_t large) {
    Func *form = clone_func(kernel, format_text(unit->ir->arena, "%s.sums", kernel->name->text));
    if (opt_inline_sums(form)) opt_clean(form, (SroaOptions){0});
    if (!opt_keep_sums(form, large) && !large) {
        func_forget(form);
        return NULL;
    }
    form->flags |= FUNC_EXPORT;
    vec_push(unit->ir->arena, &unit->sum_forms, ((SumForm){kernel, large, form}));
    return form;
}

/* The kernel as it was is not needed, unless its buffers turn out to be too large. */
static void replace_kernel(Unit *unit, Func *kernel) {
    kernel->flags &= ~(uint32_t)FUNC_EXPORT;
    for (int i = 0; i < unit->written.count; i++)
        if (unit->written.at[i].func == kernel) unit->written.at[i].flags &= ~(uint32_t)FUNC_EXPORT;
}

static bool pass_sums(Unit *unit) {
    int count = unit->ir->funcs.count;
    for (int i = unit->passed; i < count && unit->keeps_sums; i++) {
        Func *func = unit->ir->funcs.at[i];
        bool is_kernel = func->body && (func->flags & FUNC_EXPORT) && func->group_size[0] > 0;
        if (!is_kernel || original_of(unit, func) || !opt_has_sums(func)) continue;
        driver_limit_test(unit->program);
        const Func *form = unit_keep_sums(unit, func, 0);
        if (form) replace_kernel(unit, func);
        if (VERIFY_EACH_PASS && form) verify(unit, form, "sums");
    }
    return unit->ir->funcs.count > count;
}

/* ---- lanes */

static void note_remark(Unit *unit, const Func *func, const LaneRemark *remark, bool is_loop) {
    SlopeProgram *program = unit->program;
    Position at = source_position(&program->sources, remark->loc);
    const Func *original = original_of(unit, func);
    SlopeRemark row = {.kernel = original ? original->name->text : func->name->text,
                       .is_loop = is_loop,
                       .lanes = remark->width,
                       .why = remark->why,
                       .path = at.path ? at.path->text : NULL,
                       .line = at.line,
                       .column = at.column};
    vec_push(&program->session->arena, &program->session->remarks, ((RemarkRow){row, program}));
}

/* Of this machine. */
static int register_bits(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") ? 512 : __builtin_cpu_supports("avx2") ? 256 : 128;
#else
    return 128;
#endif
}

static bool pass_pairs(Func *func) { return opt_pairs(func, register_bits()); }

/* Debuggers show one item. */
static int wanted_lanes(const Unit *unit) {
    const SlopeConfig *config = &unit->program->session->config;
    if (config->lanes) return config->lanes;
    return unit->runs && !config->debug_info ? SLOPE_LANES_AUTO : 1;
}

typedef struct Called {
    Unit *unit;
    Map fresh; /* Func: not asked about yet, and new */
    VEC(Func *) funcs;
} Called;

static void add_func(Called *called, Func *func) {
    if (!map_get(&called->fresh, PTR_KEY(func))) return;
    map_put(called->unit->ir->arena, &called->fresh, PTR_KEY(func), NULL);
    vec_push(called->unit->ir->arena, &called->funcs, func);
}

static void add_called(void *user, Inst *inst) {
    if (inst->op == OP_call) add_func(user, inst->callee);
}

static void note_loop(void *user, const Func *func, const LaneRemark *remark) {
    note_remark(user, func, remark, true);
    driver_limit_test(((Unit *)user)->program);
}

/* Its other form does several groups; there may be one alone. */
static bool is_of_one_thread(const Func *kernel) {
    return kernel->group_size[0] * kernel->group_size[1] * kernel->group_size[2] == 1;
}

/* Of functions that are reached from outside, but for kernels that do several items at once. */
static void widen_loops(Unit *unit, const LaneOptions *options) {
    Called called = {.unit = unit};
    LaneRemarks remarks = {note_loop, unit};
    for (int i = unit->passed; i < unit->ir->funcs.count; i++) {
        Func *func = unit->ir->funcs.at[i];
        bool is_widened = func->wide && !is_of_one_thread(func);
        if (func->body && !is_widened) map_put(unit->ir->arena, &called.fresh, PTR_KEY(func), func);
    }
    for (int i = unit->passed; i < unit->ir->funcs.count; i++)
        if (unit->ir->funcs.at[i]->flags & FUNC_EXPORT) add_func(&called, unit->ir->funcs.at[i]);
    for (int i = 0; i < called.funcs.count; i++) region_walk(called.funcs.at[i]->body, add_called, &called);
    int made = unit->ir->funcs.count;
    opt_lane_loops(called.funcs.at, called.funcs.count, options, &remarks);
    for (int i = 0; i < called.funcs.count && VERIFY_EACH_PASS; i++)
        verify(unit, called.funcs.at[i], "lanes");
    for (; made < unit->ir->funcs.count && VERIFY_EACH_PASS; made++)
        verify(unit, unit->ir->funcs.at[made], "lanes");
}

/* Kernels get a form that does several items at once. What tells of indices out of range does so one by
 * one. */
static bool pass_lanes(Unit *unit) {
    const SlopeConfig *config = &unit->program->session->config;
    int lanes = wanted_lanes(unit), count = unit->ir->funcs.count;
    bool wanted = lanes != 1;
    LaneOptions options = {.width = lanes == SLOPE_LANES_AUTO ? 0 : lanes,
                           .register_bits = register_bits(),
                           .groups = config->groups,
                           .wave = config->wave > 0 ? config->wave : 32,
                           .alone = config->threads == 1,
                           .unchecked = config->unchecked};
    for (int i = unit->passed; i < count && wanted; i++) {
        Func *func = unit->ir->funcs.at[i];
        LaneRemark remark;
        if (!func->body || !(func->flags & FUNC_EXPORT) || func->group_size[0] == 0) continue;
        driver_limit_test(unit->program);
        opt_lanes(func, &options, &remark);
        note_remark(unit, func, &remark, false);
        if (VERIFY_EACH_PASS && func->wide) verify(unit, func->wide, "lanes");
    }
    if (wanted && !unit->has_no_lanes) widen_loops(unit, &options);
    return unit->ir->funcs.count > count;
}

/* In the form for several items, too. What it computes before loops may be there already. */
static bool pass_range(Unit *unit) {
    const SlopeConfig *config = &unit->program->session->config;
    bool copies = config->optimization >= 2 && !config->unchecked && !unit->is_checked_later;
    RangeOptions options = {.copies = copies,
                            .apart = (!unit->is_source || unit->ir->keeps_order) && !unit->ir->many_threads,
                            .register_bits = unit->is_source ? 0 : register_bits()};
    bool changed = false;
    for (int i = unit->passed; i < unit->ir->funcs.count; i++) {
        Func *func = unit->ir->funcs.at[i];
        if (!func->body) continue;
        driver_limit_test(unit->program);
        if (!opt_range(func, options)) continue;
        opt_cse(func);
        opt_licm(func);
        opt_dce(func);
        if (VERIFY_EACH_PASS) verify(unit, func, "range");
        changed = true;
    }
    return changed;
}

/* What is made is looked at, too. Source code shows loops where they were. */
static bool pass_unlikely(Unit *unit) {
    int count = unit->ir->funcs.count;
    for (int i = unit->passed; i < unit->ir->funcs.count && !unit->is_source && !unit->ir->many_threads;
         i++) {
        Func *func = unit->ir->funcs.at[i];
        if (!func->body || !opt_outline_unlikely(func)) continue;
        opt_dce(func);
        if (VERIFY_EACH_PASS) verify(unit, func, "unlikely");
    }
    return unit->ir->funcs.count > count;
}

/* Source code shows sums where they are made: Slang is there to be read, and gcc makes vectors of what is
 * carried less often than of the loops that it is given. */
static bool pass_window(Unit *unit) {
    bool changed = false;
    for (int i = unit->passed; i < unit->ir->funcs.count && !unit->is_source && !unit->ir->many_threads;
         i++) {
        Func *func = unit->ir->funcs.at[i];
        if (!func->body || !opt_window(func)) continue;
        opt_dce(func);
        if (VERIFY_EACH_PASS) verify(unit, func, "window");
        changed = true;
    }
    return changed;
}

static bool pass_legalize(Func *func) { return opt_legalize(func, (LegalOptions){0}); }

static const struct {
    const char *name;
    int level; /* from this optimisation level on */
    bool (*run)(Func *func);
    bool (*run_all)(Module *module, int first); /* instead: over all functions that are new */
    bool (*run_unit)(Unit *unit);               /* likewise */
    bool simplifies, cleans; /* `run`: and then what it leaves of a function that it changed */
} passes[] = {
    {"nowhere", 0, .run_all = opt_nowhere},
    {"waves", 0, .run = pass_waves},
    {"mark", 1, .run_all = opt_mark_derivatives},
    {"halves", 1, .run_unit = pass_halves},
    {"inline", 1, .run = pass_inline},
    {"sroa", 1, .run = opt_sroa},
    {"ssa", 1, .run = opt_ssa},
    {"share", 1, .run = opt_share}, /* what ssa leaves: arrays */
    {"simplify", 1, .run = opt_simplify},
    {"untape", 1, .run = opt_untape},
    {"direct", 1, .run = opt_direct_sums},
    {"unroll", 1, .run = pass_unroll},
    {"simplify-again", 1, .run = opt_simplify},
    {"legalize", 0, .run = pass_legalize},
    {"pure", 1, .run_all = opt_infer_pure},
    {"powers", 1, .run = opt_powers},
    {"extremes", 1, .run = opt_extremes},
    {"cse", 1, .run = opt_cse},
    {"licm", 1, .run = opt_licm},
    {"together", 1, .run = pass_together},
    {"reciprocal", 1, .run = opt_reciprocal},
    {"upward", 1, .run = opt_upward},
    {"late", 1, .run = opt_late_sums},
    {"dce", 1, .run = opt_dce},
    {"rejoin", 1, .run = opt_rejoin, .simplifies = true, .cleans = true},
    {"parts", 1, .run = pass_parts},
    {"siblings", 1, .run = pass_siblings},
    {"asked", 1, .run = pass_asked},
    {"sums", 1, .run_unit = pass_sums},
    {"lanes", 1, .run_unit = pass_lanes},
    {"turn", 2, .run = opt_turn},
    {"rows", 1, .run = pass_rows},
    {"nests", 2, .run = pass_nests},
    {"placed", 2, .run = opt_place},
    {"copies", 2, .run = opt_copies},
    {"steps", 1, .run = opt_steps, .cleans = true},
    {"range", 1, .run_unit = pass_range},
    {"fill", 2, .run = opt_fill, .cleans = true},
    {"skip", 2, .run = opt_skip, .cleans = true},
    {"totals", 2, .run = opt_totals},
    {"window", 2, .run_unit = pass_window},
    {"near", 2, .run = opt_near},
    {"first", 2, .run = opt_first, .simplifies = true, .cleans = true},
    {"pairs", 2, .run = pass_pairs, .cleans = true},
    {"order", 2, .run = opt_order, .cleans = true},
    {"terms", 2, .run = opt_terms, .simplifies = true, .cleans = true},
    {"calls", 2, .run = opt_calls},
    {"sink", 1, .run = pass_sink},
    {"unlikely", 2, .run_unit = pass_unlikely},
    {"padded", 2, .run = opt_pad_rows},
    {"outline", 2, .run = opt_outline, .cleans = true},
    {"ways", 2, .run = opt_ways, .simplifies = true, .cleans = true},
};
enum { PASSES = sizeof passes / sizeof passes[0] };

static const char *const early_stages[] = {"syntax", "check", "lower"};
enum { EARLY = sizeof early_stages / sizeof early_stages[0] };

const char *driver_stage_name(int index) {
    int stages = 0;
    while (ad_stages[stages]) stages++;
    if (index < 0) return NULL;
    if (index < EARLY) return early_stages[index];
    if (index < EARLY + stages) return ad_stages[index - EARLY];
    return index < EARLY + stages + PASSES ? passes[index - EARLY - stages].name : NULL;
}

static void verify_all(Unit *unit, const char *pass) {
    for (int i = unit->passed; i < unit->ir->funcs.count; i++)
        if (unit->ir->funcs.at[i]->body) verify(unit, unit->ir->funcs.at[i], pass);
}

/* ---- differentiation: autodiff does not see the passes, nor they it */

static void inline_for_ad(void *user, Func *func,
                          bool (*may)(void *user, const Func *callee, const Inst *call), void *may_user) {
    (void)user;
    InlinePolicy policy = {.max_size = INT_MAX, .may = may, .user = may_user};
    if (may) { /* functions that call others twice double */
        const Plenty plenty = {.many = 2000, .times = 1};
        policy.max_size = SHORT;
        policy.max_whole = MOST_INLINED_ONCE;
        policy.max_each = most_of_each(func->module, plenty, MOST_INLINED_ONCE);
    }
    opt_inline(func, policy);
}

static void lower_exits_for_ad(void *user, Func *func) {
    (void)user;
    opt_simplify(func); /* exits that are plain control flow need no conditions */
    opt_lower_exits(func);
}

/* Derivatives in Slang are there to be read. */
static void clean_for_ad(void *user, Func *func) {
    const Unit *unit = user;
    opt_sroa_func(func, (SroaOptions){.keep_opaque = true});
    opt_ssa(func);
    opt_simplify(func);
    opt_unroll(func);
    opt_take_digits(func);
    if (!unit->has_no_pointers) opt_write_out(func, unit->is_source);
    opt_simplify(func);
    opt_dce(func);
}

static void split_for_ad(void *user, Func *func, bool params) {
    (void)user;
    opt_sroa_func(func, (SroaOptions){.keep_opaque = true, .any_size = true, .params = params});
}

static void clean_flat_for_ad(void *user, Func *func) {
    (void)user;
    opt_clean(func, (SroaOptions){.keep_opaque = true, .flat = true});
}

static bool straighten_for_ad(void *user, Func *func) {
    (void)user;
    bool changed = opt_behind(func);
    return opt_decide(func) || changed;
}

static void merge_for_ad(void *user, Func *func, const InstVec *calls, const ValVec *named) {
    (void)user;
    opt_cse_linear(func);
    opt_dce_but(func, calls, named);
}

static bool is_stop(const char *stop, const char *name) { return stop && strcmp(stop, name) == 0; }

/* `slope dump --after linearize` and the like. */
static void show_stage(void *user, const char *stage, const Func *what, const Func *now, const Func *other) {
    Unit *unit = user;
    (void)what;
    if (!unit->dump || !is_stop(unit->dump_stage, stage)) return;
    if (other) ir_print_halves(unit->dump, now, other);
    else ir_print_func(unit->dump, now);
    text_char(unit->dump, '\n');
}

static void note_stored(void *user, const AdStored *stored) {
    Unit *unit = user;
    SlopeProgram *program = unit->program;
    SlopeSession *session = program->session;
    Position at = source_position(&program->sources, stored->loc),
             loop = source_position(&program->sources, stored->loop);
    SlopeStored row = {.function = stored->what->name->text,
                       .name = format_text(&program->arena, "%s", stored->name),
                       .path = at.path ? at.path->text : NULL,
                       .line = at.line,
                       .column = at.column,
                       .bytes = stored->bytes,
                       .loop_line = stored->loop ? loop.line : 0,
                       .exact = stored->exact};
    vec_push(&session->arena, &session->stored, ((StoredRow){row, program}));
}

static void keep_written(Unit *unit) {
    for (int k = unit->passed; k < unit->ir->funcs.count; k++) {
        Func *func = unit->ir->funcs.at[k];
        if (!func->body) continue;
        CloneMap map = {.module = unit->ir, .func = func};
        Written written = {func, clone_region(&map, func->body, NULL), func->flags};
        vec_push(unit->ir->arena, &unit->written, written);
    }
}

/* Puts back what was written, or what the passes made of it. A program may ask for one derivative after the
 * other, and each is made from the source. */
static void exchange_written(Unit *unit) {
    for (int i = 0; i < unit->written.count; i++) {
        Written *written = &unit->written.at[i],
                now = {written->func, written->func->body, written->func->flags};
        written->func->body = written->body;
        written->func->flags = written->flags | (now.flags & FUNC_EXPORT);
        *written = now;
    }
}

static bool has_no_lanes(const Unit *unit) { return unit->has_no_lanes || wanted_lanes(unit) == 1; }

static void differentiate(Unit *unit) {
    StageTimer timer;
    driver_time_begin(unit->program->session, &timer, "autodiff");
    AdConfig config = {.module = unit->ir,
                       .no_lanes = has_no_lanes(unit),
                       .many_threads = unit->ir->many_threads,
                       .inline_calls = inline_for_ad,
                       .lower_exits = lower_exits_for_ad,
                       .clean = clean_for_ad,
                       .split = split_for_ad,
                       .clean_flat = clean_flat_for_ad,
                       .straighten = straighten_for_ad,
                       .merge = merge_for_ad,
                       .after = show_stage,
                       .stored = note_stored,
                       .user = unit};
    exchange_written(unit);
    begin_copying(unit->ir, 0);
    ad_run(&config);
    exchange_written(unit);
    driver_time_end(&timer);
}

bool unit_is_ad_stage(const char *stage) {
    for (int i = 0; stage && ad_stages[i]; i++)
        if (strcmp(stage, ad_stages[i]) == 0) return true;
    return false;
}

/* With --strict every access stays as it was written, to be tested. */
static int level_of(const Unit *unit) {
    const SlopeConfig *config = &unit->program->session->config;
    return config->strict ? 0 : config->optimization;
}

bool unit_run_passes(Unit *unit, const char *stop) {
    SlopeSession *session = unit->program->session;
    if (is_stop(stop, "lower") || unit_is_ad_stage(stop)) return true;
    keep_written(unit);
    begin_copying(unit->ir, unit->passed);
    for (int i = 0; i < PASSES; i++) {
        StageTimer timer;
        if (passes[i].level > level_of(unit)) continue;
        driver_time_begin(session, &timer, passes[i].name);
        if (passes[i].run_unit) passes[i].run_unit(unit);
        if (passes[i].run_all) passes[i].run_all(unit->ir, unit->passed);
        for (int k = unit->passed; k < unit->ir->funcs.count && passes[i].run; k++) {
            Func *func = unit->ir->funcs.at[k];
            if (!func->body) continue;
            driver_limit_test(unit->program);
            bool changed = passes[i].run(func);
            if (changed && passes[i].simplifies) opt_simplify(func);
            if (changed && passes[i].cleans) opt_dce(func);
            if (VERIFY_EACH_PASS) verify(unit, func, passes[i].name);
        }
        driver_time_end(&timer);
        if (is_stop(stop, passes[i].name)) return true;
    }
    if (!VERIFY_EACH_PASS) verify_all(unit, "the passes");
    unit->passed = unit->ir->funcs.count;
    return true;
}

/* ---- what errors leave */

typedef struct FailedCall {
    Func *func;
    bool changed;
} FailedCall;

/* The function needs the other. */
static void spread_failure(FailedCall *search, const Func *other) {
    if (!other || !(other->flags & FUNC_FAILED) || (search->func->flags & FUNC_FAILED)) return;
    search->func->flags |= FUNC_FAILED;
    search->changed = true;
}

static void look_at_call(void *user, Inst *inst) {
    if (inst->op == OP_call) spread_failure(user, inst->callee);
}

/* Functions with errors are not well-formed, and a program may ask for others afterwards: they lose their
 * bodies, and so do those who call them, and derivatives. */
static void give_up_failed(const Unit *unit) {
    FailedCall search;
    do {
        search.changed = false;
        for (int i = 0; i < unit->ir->funcs.count; i++) {
            Func *func = search.func = unit->ir->funcs.at[i];
            spread_failure(&search, func->derivation.of);
            if (func->body) region_walk(func->body, look_at_call, &search);
            if (func->flags & FUNC_FAILED) func->body = NULL;
        }
    } while (search.changed);
}

static SlopeStatus lower_and_derive(Unit *unit, const char *stop) {
    SlopeSession *session = unit->program->session;
    StageTimer timer;
    int failures = session->diags->failures;
    driver_time_begin(session, &timer, "lower");
    lower_run(unit->lowerer);
    driver_time_end(&timer);
    if (session->diags->failures > failures) return SLOPE_STATUS_error;
    if (VERIFY_EACH_PASS) verify_all(unit, "lower");
    if (is_stop(stop, "lower")) return SLOPE_STATUS_ok;
    differentiate(unit);
    if (session->diags->failures > failures) return SLOPE_STATUS_error;
    verify_all(unit, "autodiff");
    return SLOPE_STATUS_ok;
}

SlopeStatus unit_derive(Unit *unit, const char *stop) {
    SlopeStatus status = unit_check(unit);
    if (status != SLOPE_STATUS_ok) return status;
    status = lower_and_derive(unit, stop);
    unit->has_failed |= status != SLOPE_STATUS_ok;
    if (unit->has_failed) give_up_failed(unit);
    return status;
}

SlopeStatus unit_refuse_failed(const Unit *unit, const Func *func) {
    for (int i = 0; i < unit->ir->funcs.count; i++) {
        const Func *asked = unit->ir->funcs.at[i];
        if (!(asked->flags & FUNC_FAILED) || (func ? asked != func : !(asked->flags & FUNC_EXPORT))) continue;
        diag_report(&unit->program->diags, DIAG_told_before, asked->loc,
                    format_text(unit->ir->arena, "'%s'", asked->name->text));
        return SLOPE_STATUS_error;
    }
    return SLOPE_STATUS_ok;
}

SlopeStatus unit_prepare(Unit *unit, const char *stop) {
    SlopeStatus status = unit_derive(unit, stop);
    if (status == SLOPE_STATUS_ok) unit_run_passes(unit, stop);
    return status;
}

/* What is left of views would be refused. */
static void pack(const Unit *unit, Func *func) {
    if (!opt_pack(func)) return;
    if (level_of(unit) > 0) opt_clean(func, (SroaOptions){0});
    else opt_dce(func);
}

void unit_legalize(Unit *unit, uint32_t lacks) {
    LegalOptions options = {.integers = (lacks & BACKEND_LACKS_INTEGERS) != 0,
                            .clamps = (lacks & BACKEND_LACKS_CLAMPS) != 0,
                            .halves = (lacks & BACKEND_LACKS_HALVES) != 0,
                            .zeros = (lacks & BACKEND_LACKS_ZEROS) != 0};
    if (lacks & ~unit->legal_for) unit->legalized = 0; /* another backend had more */
    unit->legal_for |= lacks;
    for (; unit->legalized < unit->ir->funcs.count; unit->legalized++) {
        Func *func = unit->ir->funcs.at[unit->legalized];
        if ((lacks & BACKEND_LACKS_SHORT) && level_of(unit) >= 2) opt_scalars(func);
        if (lacks & BACKEND_LACKS_VIEWS) pack(unit, func);
        opt_legalize(func, options);
        if ((lacks & BACKEND_LACKS_UNUSED) && level_of(unit) == 0 && func->body) opt_dce(func);
        if (VERIFY_EACH_PASS && func->body) verify(unit, func, "legalizing");
    }
}

void unit_inline_waiting(Unit *unit) {
    for (int i = 0; i < unit->ir->funcs.count; i++) {
        Func *func = unit->ir->funcs.at[i];
        const int *size = func->group_size;
        if (func->body && (func->flags & FUNC_EXPORT) && size[0] * size[1] * size[2] > 1)
            opt_inline_waiting(func);
    }
    verify_all(unit, "inlining what waits");
}
