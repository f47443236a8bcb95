/* Attributes: which are known, what they do to the declaration they stand on. */
#include "check/checker.h"

#include <stdlib.h>

/* Attributes are written in any case: [NumThreads], [numthreads]. */
static bool same_word(const char *a, const char *b) {
    for (; *a && *b; a++, b++) {
        char x = *a >= 'A' && *a <= 'Z' ? (char)(*a + 32) : *a,
             y = *b >= 'A' && *b <= 'Z' ? (char)(*b + 32) : *b;
        if (x != y) return false;
    }
    return *a == *b;
}

Attribute *find_attribute(const Decl *decl, const char *name) {
    for (int i = 0; i < decl->attributes.count; i++)
        if (same_word(decl->attributes.at[i]->name->text, name)) return decl->attributes.at[i];
    return NULL;
}

/* ---- arguments */

static bool constant_arg(Checker *c, Decl *decl, Attribute *attribute, int index, int64_t *value) {
    Env env = env_for_decl(c, decl->parent ? decl->parent : decl);
    env.in_attribute = true;
    Expr *e = check_value(&env, attribute->args.at[index]);
    if (e->kind == EXPR_error) return false;
    if (eval_number(&env, e, value)) return true;
    report_not_number(c, e);
    return false;
}

static bool needs_args(Checker *c, Attribute *attribute, int least, int most) {
    if (attribute->args.count >= least && attribute->args.count <= most) return true;
    report(c, DIAG_attribute_args, attribute->loc, attribute->name->text,
           range_text(c, least, most, "argument"), attribute->args.count);
    return false;
}

/* ---- what they do */

static void attr_flag(Checker *c, Decl *decl, Attribute *attribute, uint32_t flags) {
    (void)c, (void)attribute;
    decl->flags |= flags;
}

/* Stages that other targets have: their entry points are checked, and not compiled. */
static bool is_other_stage(Str stage) {
    static const char *const stages[] = {"vertex",        "fragment",     "pixel",      "geometry",
                                         "hull",          "domain",       "mesh",       "amplification",
                                         "raygeneration", "raygen",       "closesthit", "anyhit",
                                         "miss",          "intersection", "callable"};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        if (str_eq(stage, str_of(stages[i]))) return true;
    return false;
}

/* [numthreads] belongs to mesh stages, too. */
static bool has_other_stage(const Decl *decl) {
    const Attribute *shader = find_attribute(decl, "shader");
    return shader && shader->args.count == 1 && shader->args.at[0]->kind == EXPR_string &&
           is_other_stage(shader->args.at[0]->text);
}

bool check_group_fits(const int64_t size[3]) {
    enum { MOST_IN_ROW = 65536, MOST = 1 << 30 };
    int64_t all = 1;
    for (int i = 0; i < 3; i++) {
        if (size[i] < 1 || size[i] > MOST_IN_ROW) return false;
        all *= size[i];
    }
    return all <= MOST;
}

static void attr_numthreads(Checker *c, Decl *decl, Attribute *attribute, uint32_t unused) {
    (void)unused;
    Sema *sema = decl_sema(c, decl);
    if (!needs_args(c, attribute, 1, 3)) return;
    int64_t size[3] = {1, 1, 1};
    for (int i = 0; i < 3; i++) {
        if (i < attribute->args.count && !constant_arg(c, decl, attribute, i, &size[i])) size[i] = 1;
        if (!check_group_fits(size)) {
            report(c, DIAG_numthreads_range, attribute->args.at[i]->loc);
            size[i] = 1;
        } else if (size[i] > 1024) report(c, DIAG_numthreads_large, attribute->args.at[i]->loc);
        sema->group_size[i] = (int)size[i];
    }
    if (!has_other_stage(decl)) decl->flags |= DECL_ENTRY;
}

/* A number as it is written, with a sign perhaps. */
static bool literal_number(const Expr *e, double *value) {
    if (e->kind == EXPR_unary && e->op == OPERATOR_sub && literal_number(e->a, value)) {
        *value = -*value;
        return true;
    }
    if (e->kind == EXPR_int) *value = (double)e->number;
    else if (e->kind == EXPR_float) *value = e->real;
    else return false;
    return true;
}

/* Where gradcheck draws a parameter from. */
static void attr_range(Checker *c, Decl *decl, Attribute *attribute, uint32_t unused) {
    (void)unused;
    double *range = arena_array(c->arena, double, 2);
    if (!needs_args(c, attribute, 2, 2)) return;
    for (int i = 0; i < 2; i++)
        if (!literal_number(attribute->args.at[i], &range[i])) {
            report(c, DIAG_range_number, attribute->args.at[i]->loc);
            return;
        }
    if (range[0] < range[1]) decl_sema(c, decl)->range = range;
    else report(c, DIAG_range_number, attribute->args.at[1]->loc);
}

static void attr_format(Checker *c, Decl *decl, Attribute *attribute, uint32_t unused) {
    (void)unused;
    if (needs_args(c, attribute, 1, 1)) check_image_format(c, decl, attribute);
}

static void attr_shader(Checker *c, Decl *decl, Attribute *attribute, uint32_t unused) {
    (void)unused;
    if (!needs_args(c, attribute, 1, 1)) return;
    const Expr *stage = attribute->args.at[0];
    if (stage->kind == EXPR_string && str_eq(stage->text, STR("compute"))) decl->flags |= DECL_ENTRY;
    else if (stage->kind == EXPR_string && is_other_stage(stage->text))
        decl_sema(c, decl)->stage = stage->text;
    else report(c, DIAG_shader_stage, attribute->loc);
}

static void attr_rank(Checker *c, Decl *decl, Attribute *attribute, uint32_t unused) {
    (void)unused;
    int64_t rank;
    if (needs_args(c, attribute, 1, 1) && constant_arg(c, decl, attribute, 0, &rank))
        decl_sema(c, decl)->overload_rank = (int)rank;
}

static void attr_any_value_size(Checker *c, Decl *decl, Attribute *attribute, uint32_t unused) {
    (void)unused;
    int64_t size;
    if (needs_args(c, attribute, 1, 1) && constant_arg(c, decl, attribute, 0, &size))
        decl_sema(c, decl)->any_value_size = size;
}

static void attr_op(Checker *c, Decl *decl, Attribute *attribute, uint32_t unused) {
    (void)unused;
    if (attribute->args.count == 1) decl_sema(c, decl)->op = attribute->args.at[0]->name;
}

static void attr_recompute(Checker *c, Decl *decl, Attribute *attribute, uint32_t unused) {
    (void)unused, (void)c;
    decl->flags |= DECL_RECOMPUTE;
    if (attribute->args.count == 1 && attribute->args.at[0]->kind == EXPR_member &&
        strcmp(attribute->args.at[0]->name->text, "Allow") == 0)
        decl->flags |= DECL_RECOMPUTE_EFFECTS;
}

static void attr_derivative(Checker *c, Decl *decl, Attribute *attribute, Attribute **place) {
    if (!needs_args(c, attribute, 1, 1)) return;
    if (*place) report(c, DIAG_two_derivatives, attribute->loc, decl->name ? decl->name->text : "?");
    else *place = attribute;
}

static void attr_fwd(Checker *c, Decl *decl, Attribute *attribute, uint32_t unused) {
    (void)unused;
    attr_derivative(c, decl, attribute, &decl_sema(c, decl)->fwd_attr);
}

/* Seed 004 writes both under one name; the signatures tell them apart. */
static void attr_bwd(Checker *c, Decl *decl, Attribute *attribute, uint32_t unused) {
    (void)unused;
    Sema *sema = decl_sema(c, decl);
    attr_derivative(c, decl, attribute, sema->bwd_attr ? &sema->bwd_attr2 : &sema->bwd_attr);
}

static void attr_substitute(Checker *c, Decl *decl, Attribute *attribute, uint32_t unused) {
    (void)unused;
    attr_derivative(c, decl, attribute, &decl_sema(c, decl)->substitute_attr);
}

static void attr_primal(Checker *c, Decl *decl, Attribute *attribute, uint32_t unused) {
    (void)unused;
    attr_derivative(c, decl, attribute, &decl_sema(c, decl)->primal_attr);
}

/* What implements a requirement decides for itself whether it is treated so. */
static void attr_treat(Checker *c, Decl *decl, Attribute *attribute, uint32_t flags) {
    if (decl->parent && decl->parent->kind == DECL_interface && !decl->body && !decl->lazy.count)
        report(c, DIAG_treat_requirement, attribute->loc, decl->name ? decl->name->text : "?");
    else decl->flags |= flags;
}

static void attr_member(Checker *c, Decl *decl, Attribute *attribute, uint32_t unused) {
    (void)unused;
    if (decl->flavour != VAR_field || !decl->parent || decl->parent->kind != DECL_struct) {
        report(c, DIAG_derivative_member_alone, attribute->loc, decl->name ? decl->name->text : "?");
        return;
    }
    if (needs_args(c, attribute, 1, 1)) decl_sema(c, decl)->derivative_member = attribute->args.at[0];
}

/* A constant that others may set before the program is compiled; here it is what it is declared to be. */
static void attr_constant_id(Checker *c, Decl *decl, Attribute *attribute, uint32_t unused) {
    (void)unused, (void)c, (void)attribute;
    decl->modifiers |= MODIFIER_static | MODIFIER_const;
}

static void attr_one_arg(Checker *c, Decl *decl, Attribute *attribute, uint32_t unused) {
    (void)unused, (void)decl;
    needs_args(c, attribute, 1, 1);
}

enum { ON_FUNC = 1, ON_TYPE = 2, ON_VAR = 4, ON_STMT = 8, ON_ANY = 15 };

static const struct {
    const char *name;
    int targets;
    void (*act)(Checker *c, Decl *decl, Attribute *attribute, uint32_t flags);
    uint32_t flags;
} known_attributes[] = {
    {"shader", ON_FUNC, attr_shader, 0},
    {"numthreads", ON_FUNC, attr_numthreads, 0},
    {"mutating", ON_FUNC, attr_flag, DECL_MUTATING},
    {"__ref", ON_FUNC, attr_flag, DECL_MUTATING},
    {"nonmutating", ON_FUNC, attr_flag, DECL_NONMUTATING},
    {"Differentiable", ON_FUNC, attr_flag, DECL_FWD | DECL_BWD},
    {"BackwardDifferentiable", ON_FUNC, attr_flag, DECL_FWD | DECL_BWD},
    {"ForwardDifferentiable", ON_FUNC, attr_flag, DECL_FWD},
    {"ForwardDerivative", ON_FUNC, attr_fwd, 0},
    {"BackwardDerivative", ON_FUNC, attr_bwd, 0},
    {"ForwardDerivativeOf", ON_FUNC, attr_one_arg, 0},
    {"BackwardDerivativeOf", ON_FUNC, attr_one_arg, 0},
    {"__ApplyOf", ON_FUNC, attr_one_arg, 0},
    {"__FuncExtension", ON_FUNC, attr_flag, 0},
    {"PrimalSubstitute", ON_FUNC, attr_substitute, 0},
    {"PrimalSubstituteOf", ON_FUNC, attr_one_arg, 0},
    {"ForwardPass", ON_FUNC, attr_primal, 0},
    {"TreatAsDifferentiable", ON_FUNC, attr_treat, DECL_TREAT_AS_DIFF},
    {"NoDiffThis", ON_FUNC, attr_flag, DECL_NO_DIFF_THIS},
    {"DerivativeMember", ON_VAR, attr_member, 0},
    {"Range", ON_VAR, attr_range, 0},
    {"format", ON_VAR, attr_format, 0},
    {"vk::image_format", ON_VAR, attr_format, 0},
    {"deriv_method", ON_FUNC, attr_flag, DECL_DERIV_METHOD},
    {"PreferRecompute", ON_FUNC, attr_recompute, 0},
    {"PreferCheckpoint", ON_FUNC, attr_flag, DECL_CHECKPOINT},
    {"ForceInline", ON_FUNC, attr_flag, DECL_FORCE_INLINE},
    {"__unsafeForceInlineEarly", ON_FUNC, attr_flag, DECL_FORCE_INLINE},
    {"noinline", ON_FUNC, attr_flag, DECL_NO_INLINE},
    {"NoDiscard", ON_FUNC, NULL, 0},
    {"OverloadRank", ON_FUNC, attr_rank, 0},
    {"anyValueSize", ON_TYPE, attr_any_value_size, 0},
    {"UnscopedEnum", ON_TYPE, attr_flag, DECL_UNSCOPED},
    {"Flags", ON_TYPE, attr_flag, DECL_FLAGS_ENUM},
    {"deprecated", ON_ANY, attr_flag, DECL_DEPRECATED},
    {"__op", ON_FUNC, attr_op, 0},
    {"__transposable", ON_FUNC, attr_flag, DECL_TRANSPOSABLE},
    {"__differentiates", ON_FUNC, attr_one_arg, 0},
    {"__builtin_type", ON_TYPE, NULL, 0},
    {"__AttributeUsage", ON_TYPE, NULL, 0},
    {"MaxIters", ON_STMT, NULL, 0},
    {"ForceUnroll", ON_STMT, NULL, 0},
    {"Checkpoint", ON_STMT, NULL, 0},
    {"unroll", ON_STMT, NULL, 0},
    {"loop", ON_STMT, NULL, 0},
    {"fastopt", ON_STMT, NULL, 0},
    {"allow_uav_condition", ON_STMT, NULL, 0},
    {"branch", ON_STMT, NULL, 0},
    {"flatten", ON_STMT, NULL, 0},
    {"forcecase", ON_STMT, NULL, 0},
    {"call", ON_STMT, NULL, 0},
    /* accepted, without effect on the CPU */
    {"require", ON_ANY, NULL, 0},
    {"sealed", ON_ANY, NULL, 0},
    {"open", ON_ANY, NULL, 0},
    {"COM", ON_ANY, NULL, 0},
    {"DllExport", ON_ANY, NULL, 0},
    {"DllImport", ON_ANY, NULL, 0},
    {"CudaKernel", ON_FUNC, attr_flag, DECL_ENTRY | DECL_LAUNCHED},
    {"CudaDeviceExport", ON_ANY, NULL, 0},
    {"CudaHost", ON_ANY, NULL, 0},
    {"AutoPyBindCUDA", ON_ANY, NULL, 0},
    {"PyExport", ON_ANY, NULL, 0},
    {"TorchEntryPoint", ON_ANY, NULL, 0},
    {"__target_intrinsic", ON_ANY, NULL, 0},
    {"__glsl_extension", ON_ANY, NULL, 0},
    {"__glsl_version", ON_ANY, NULL, 0},
    {"__spirv_version", ON_ANY, NULL, 0},
    {"__cuda_sm_version", ON_ANY, NULL, 0},
    {"__wgsl_extension", ON_ANY, NULL, 0},
    {"__specialized_for_target", ON_ANY, NULL, 0},
    {"__requiresNVAPI", ON_ANY, NULL, 0},
    {"__NoSideEffect", ON_ANY, NULL, 0},
    {"HLSLExport", ON_ANY, NULL, 0},
    {"WaveSize", ON_ANY, NULL, 0},
    {"earlydepthstencil", ON_ANY, NULL, 0},
    {"shader_record", ON_ANY, NULL, 0},
    {"DerivativeGroupQuad", ON_ANY, NULL, 0},
    {"DerivativeGroupLinear", ON_ANY, NULL, 0},
    {"raypayload", ON_ANY, NULL, 0},
    {"payload", ON_ANY, NULL, 0},
    {"root", ON_ANY, NULL, 0},
    {"instance", ON_ANY, NULL, 0},
    {"outputtopology", ON_ANY, NULL, 0},
    {"maxvertexcount", ON_ANY, NULL, 0},
    {"domain", ON_ANY, NULL, 0},
    {"partitioning", ON_ANY, NULL, 0},
    {"patchconstantfunc", ON_ANY, NULL, 0},
    {"outputcontrolpoints", ON_ANY, NULL, 0},
    {"maxtessfactor", ON_ANY, NULL, 0},
    {"RootSignature", ON_ANY, NULL, 0},
    {"__from_one", ON_ANY, NULL, 0},
    {"__element_of", ON_ANY, NULL, 0},
    {"vk::constant_id", ON_VAR, attr_constant_id, 0},
    {"vk::", ON_ANY, NULL, 0}, /* and whatever follows */
    {"vk_binding", ON_ANY, NULL, 0},
    {"SpecializationConstant", ON_VAR, attr_constant_id, 0},
    {"constref", ON_FUNC, NULL, 0},
    {"__NonCopyableType", ON_TYPE, NULL, 0},
    {"allow", ON_ANY, NULL, 0},
    {"Specialize", ON_ANY, NULL, 0},
    {"RequiresNVAPI", ON_ANY, NULL, 0},
    {"NonUniformReturn", ON_ANY, NULL, 0},
    {"__readNone", ON_ANY, NULL, 0},
    {"KnownBuiltin", ON_ANY, NULL, 0},
};

/* A row that ends in a colon stands for all that begin so. */
static bool is_row_of(const char *row, const char *name) {
    size_t length = strlen(row);
    return row[length - 1] == ':' ? strncmp(row, name, length) == 0 : same_word(row, name);
}

/* What the library alone may say. */
static bool is_of_library(const char *name) {
    return strcmp(name, "__op") == 0 || strcmp(name, "__transposable") == 0 ||
           strcmp(name, "__differentiates") == 0 || strcmp(name, "__builtin_type") == 0;
}

/* -1: unknown. Its name is then the one in the table. */
static int find_known(Checker *c, Attribute *attribute, const Decl *decl) {
    for (int i = 0; i < (int)(sizeof known_attributes / sizeof known_attributes[0]); i++) {
        if (!is_row_of(known_attributes[i].name, attribute->name->text)) continue;
        bool hidden = is_of_library(known_attributes[i].name) && !(decl && (decl->flags & DECL_PRELUDE));
        const char *row = known_attributes[i].name;
        if (row[strlen(row) - 1] != ':') attribute->name = name_from(c->names, row);
        return hidden ? -1 : i;
    }
    return -1;
}

/* A struct `FooAttribute` marked [__AttributeUsage] defines [Foo]. */
static bool is_user_attribute(Env *env, Name name) {
    Checker *c = env->c;
    Candidates found = {0};
    Name full = name_from(c->names, format_text(c->arena, "%sAttribute", name->text));
    if (!lookup_name(env, full, &found)) return false;
    return find_attribute(found.at[0].decl, "__AttributeUsage") != NULL;
}

/* Words that programs define attributes by, too: theirs are meant then. */
static bool is_likely_name(const char *name) {
    return strcmp(name, "Range") == 0 || strcmp(name, "format") == 0 || strcmp(name, "ForwardPass") == 0;
}

static void unknown_attribute(Checker *c, Attribute *attribute) {
    report(c, DIAG_unknown_attribute, attribute->loc, attribute->name->text);
    VEC(Name) names = {0};
    for (size_t i = 0; i < sizeof known_attributes / sizeof known_attributes[0]; i++)
        if (!is_of_library(known_attributes[i].name))
            vec_push(c->arena, &names, name_from(c->names, known_attributes[i].name));
    Name nearest = diag_nearest(attribute->name, names.at, names.count);
    if (nearest) note_instead(c, attribute->name, nearest->text);
}

static int target_of(const Decl *decl) {
    if (decl->kind == DECL_func) return ON_FUNC;
    if (decl->kind == DECL_property || decl->kind == DECL_subscript) return ON_FUNC;
    if (decl->kind == DECL_var) return ON_VAR;
    return ON_TYPE;
}

void check_attributes(Checker *c, Decl *decl) {
    for (int i = 0; i < decl->attributes.count; i++) {
        Attribute *attribute = decl->attributes.at[i];
        if (attribute->used) continue;
        attribute->used = true;
        Name written = attribute->name;
        int k = find_known(c, attribute, decl);
        Env env = env_for_decl(c, decl);
        if ((k < 0 || is_likely_name(known_attributes[k].name)) && is_user_attribute(&env, written)) continue;
        if (k < 0) unknown_attribute(c, attribute);
        else if (decl->kind != DECL_func &&
                 (known_attributes[k].flags & (DECL_FWD | DECL_BWD | DECL_TREAT_AS_DIFF)) &&
                 target_of(decl) == ON_FUNC) {
            report(c, DIAG_mark_accessor, attribute->loc, attribute->name->text);
        } else if (!(known_attributes[k].targets & target_of(decl))) {
            report(c, DIAG_attribute_misplaced, attribute->loc, attribute->name->text);
        } else if (known_attributes[k].act) {
            known_attributes[k].act(c, decl, attribute, known_attributes[k].flags);
        }
    }
}

static bool is_loop(const Stmt *stmt) {
    return stmt->kind == STMT_for || stmt->kind == STMT_while || stmt->kind == STMT_do ||
           stmt->kind == STMT_static_for;
}

static bool is_named(const Attribute *attribute, const char *name) {
    return strcmp(attribute->name->text, name) == 0;
}

/* Of loops only, and with so many arguments. */
static bool check_loop_attribute(Checker *c, const Stmt *stmt, Attribute *attribute) {
    bool iterations = is_named(attribute, "MaxIters"), unrolls = is_named(attribute, "ForceUnroll");
    if (!iterations && !unrolls) return true;
    if (!is_loop(stmt)) {
        report(c, DIAG_attribute_misplaced, attribute->loc, attribute->name->text);
        return false;
    }
    return needs_args(c, attribute, iterations ? 1 : 0, 1);
}

/* Steps of `for (i = start; i < end; i += by)`; -1: not known. */
static int64_t count_steps(Env *env, const Stmt *stmt) {
    const Stmt *init = stmt->init;
    const Expr *condition = stmt->expr, *step = stmt->step;
    bool counts = init && init->kind == STMT_decl && init->decls.count == 1 && init->decls.at[0]->init &&
                  condition && step && condition->kind == EXPR_builtin && condition->args.count == 2 &&
                  step->kind == EXPR_update && step->op == OPERATOR_add && step->a->kind == EXPR_decl &&
                  step->a->decl == init->decls.at[0];
    int64_t start, end, by = 1;
    if (!counts) return -1;
    bool inclusive = condition->op == OPERATOR_less_equal;
    const Expr *counter = condition->args.at[0];
    if ((!inclusive && condition->op != OPERATOR_less) || counter->kind != EXPR_decl ||
        counter->decl != init->decls.at[0])
        return -1;
    if (!eval_number(env, init->decls.at[0]->init, &start) || !eval_number(env, condition->args.at[1], &end))
        return -1;
    if ((step->b && !eval_number(env, step->b, &by)) || by <= 0 || end - start > INT32_MAX) return -1;
    end += inclusive ? 1 : 0;
    return end <= start ? 0 : (end - start + by - 1) / by;
}

void check_max_iters(Env *env, const Stmt *stmt) {
    int64_t limit, steps = -1;
    for (int i = 0; i < stmt->attributes.count; i++) {
        const Attribute *attribute = stmt->attributes.at[i];
        if (!is_named(attribute, "MaxIters") || attribute->args.count != 1) continue;
        Expr *e = attribute->args.at[0];
        if (e->kind == EXPR_error || !eval_number(env, e, &limit)) continue;
        if (limit < 1) report_expr(env->c, e, DIAG_max_iters_range);
        else if (stmt->kind == STMT_for) steps = count_steps(env, stmt);
        if (steps >= 0 && steps < limit) report_expr(env->c, e, DIAG_max_iters_large, (int)steps);
    }
}

void check_stmt_attributes(Env *env, Stmt *stmt) {
    Checker *c = env->c;
    for (int i = 0; i < stmt->attributes.count; i++) {
        Attribute *attribute = stmt->attributes.at[i];
        int k = find_known(c, attribute, NULL);
        if (k < 0) unknown_attribute(c, attribute);
        else if (!(known_attributes[k].targets & ON_STMT))
            report(c, DIAG_attribute_misplaced, attribute->loc, attribute->name->text);
        else if (!check_loop_attribute(c, stmt, attribute)) continue;
        for (int j = 0; j < attribute->args.count && k >= 0; j++) {
            Expr *e = attribute->args.at[j] = check_value(env, attribute->args.at[j]);
            int64_t value;
            bool generic = e->kind == EXPR_decl && e->decl->kind == DECL_value_param;
            if (e->kind != EXPR_error && !generic && !eval_number(env, e, &value) &&
                !number_is_generic(env, e))
                report_not_number(c, e);
        }
    }
}
