/* Code that is written once for each target: __target_switch, __stage_switch, __intrinsic_asm, spirv_asm.
 *
 * Of a switch over targets only the branch that is taken is checked, and the statement becomes that branch,
 * so that nobody after the checker knows of targets. What other targets do may well mean nothing here. The
 * text of an __intrinsic_asm is C: where it is an expression of operators and functions that the library has
 * under some name, it becomes that expression, which has derivatives like any other.
 *
 * A function that has nothing for this target is no mistake as long as nobody calls it: Sema.foreign says
 * why, and lowering reports it if the function is reached. */
#include "check/checker.h"

#include <ctype.h>

/* ---- which branch */

/* Earlier ones are better; each is a name that stands for code that a CPU runs. */
static const char *const targets[] = {"llvm", "cpp", "cpu", "host", "host_cpp", "c"};
static const char *const stages[] = {"compute"};

typedef struct Words {
    const char *const *at;
    int count;
} Words;

#define WORDS(array) ((Words){array, (int)(sizeof(array) / sizeof *(array))})

static int rank_of(Words words, const Expr *label) {
    for (int i = 0; i < words.count; i++)
        if (label->kind == EXPR_name && strcmp(label->name->text, words.at[i]) == 0) return i;
    return words.count + 1;
}

/* Of the labels at `stmt`, the best one; the default comes after all names. */
static int rank_of_labels(Words words, const Stmt *stmt) {
    int best = stmt->is_default ? words.count : words.count + 1;
    for (int i = 0; i < stmt->values.count; i++) {
        int rank = rank_of(words, stmt->values.at[i]);
        if (rank < best) best = rank;
    }
    return best;
}

static int choose(Words words, const Stmt *body) {
    int best = words.count + 1, chosen = -1;
    for (int i = 0; i < body->body.count; i++) {
        const Stmt *s = body->body.at[i];
        int rank = s->kind == STMT_case ? rank_of_labels(words, s) : best;
        if (rank < best) best = rank, chosen = i;
    }
    return chosen;
}

static const char *names_of_labels(Checker *c, const Stmt *body) {
    Text text = {.arena = c->arena};
    for (int i = 0; i < body->body.count; i++) {
        const Stmt *s = body->body.at[i];
        for (int k = 0; k < s->values.count && s->kind == STMT_case; k++)
            if (s->values.at[k]->kind == EXPR_name)
                text_printf(&text, "%s%s", text.len ? ", " : "", s->values.at[k]->name->text);
    }
    text_char(&text, 0);
    return text.len > 1 ? text_str(&text).at : "none";
}

/* Outside of functions, in what a variable begins with or an argument is without a word, there is nobody who
 * could call it. */
static void set_foreign(Env *env, Loc loc, const char *why) {
    const Decl *decl = env->decl;
    if (!env->sig) {
        report(env->c, DIAG_foreign_code, loc, decl && decl->name ? decl->name->text : "this", why);
        return;
    }
    Sema *sema = decl_sema(env->c, env->decl);
    if (sema->foreign) return;
    sema->foreign = why;
    sema->foreign_loc = loc;
}

void check_foreign_lambda(Env *around, Decl *lambda) {
    const Sema *sema = decl_sema(around->c, lambda);
    if (sema->foreign) set_foreign(around, sema->foreign_loc, sema->foreign);
}

/* ---- switches */

static bool is_plain_break(const Stmt *stmt) { return stmt->kind == STMT_break && !stmt->label; }

/* The statements after the label, to the next label; the `break` that ends them says nothing. */
static StmtVec branch_at(Checker *c, const Stmt *body, int label) {
    StmtVec branch = {0};
    for (int i = label + 1; i < body->body.count && body->body.at[i]->kind != STMT_case; i++)
        vec_push(c->arena, &branch, body->body.at[i]);
    if (branch.count && is_plain_break(branch.at[branch.count - 1])) branch.count--;
    return branch;
}

static bool has_break(const Stmt *stmt) {
    if (!stmt) return false;
    if (stmt->kind == STMT_for || stmt->kind == STMT_while || stmt->kind == STMT_do ||
        stmt->kind == STMT_switch || stmt->kind == STMT_static_for || stmt->kind == STMT_target_switch)
        return false;
    if (is_plain_break(stmt)) return true;
    for (int i = 0; i < stmt->body.count; i++)
        if (has_break(stmt->body.at[i])) return true;
    return has_break(stmt->then) || has_break(stmt->other);
}

/* A branch that is left in the middle is a switch with that case only. */
static void become_branch(Env *env, Stmt *stmt, const StmtVec *branch) {
    Checker *c = env->c;
    Stmt *block = stmt_new(c->arena, STMT_block, stmt->loc);
    block->end = stmt->then->end;
    block->body = *branch;
    stmt->label = NULL;
    if (!has_break(block)) {
        *stmt = *block;
        return;
    }
    Stmt *label = stmt_new(c->arena, STMT_case, stmt->loc), *all = stmt_new(c->arena, STMT_block, stmt->loc);
    label->is_default = true;
    vec_push(c->arena, &all->body, label);
    vec_push(c->arena, &all->body, block);
    stmt->kind = STMT_switch;
    stmt->expr = expr_new(c->arena, EXPR_int, stmt->loc);
    stmt->then = all;
}

void check_target_switch(Env *env, Stmt *stmt) {
    Checker *c = env->c;
    bool by_stage = strcmp(stmt->label->text, "__stage_switch") == 0;
    int chosen = choose(by_stage ? WORDS(stages) : WORDS(targets), stmt->then);
    if (chosen < 0) {
        set_foreign(env, stmt->loc,
                    format_text(c->arena, "'%s' has no branch for it (it has: %s)", stmt->label->text,
                                names_of_labels(c, stmt->then)));
        return;
    }
    StmtVec branch = branch_at(c, stmt->then, chosen);
    become_branch(env, stmt, &branch);
    check_stmt(env, stmt);
}

/* ---- pixels */

void check_discard(Env *env, const Stmt *stmt) {
    set_foreign(env, stmt->loc, "'discard' ends a pixel, and it has none");
}

/* ---- launches */

bool is_launch(const Expr *callee) {
    return callee->kind == EXPR_call && callee->a->kind == EXPR_name &&
           strcmp(callee->a->name->text, "__dispatch_kernel") == 0 && callee->args.count == 3;
}

/* __dispatch_kernel(kernel, blocks, threads)(arguments): __run_grid(blocks, threads, () =>
 * kernel(arguments)) */
Expr *check_launch(Env *env, Expr *e) {
    Checker *c = env->c;
    const ExprVec *args = &e->a->args;
    const Type *sizes = type_vector(c->types, type_basic(c->types, TYPE_uint), 3);
    Expr *sizes_of[3] = {0};
    for (int i = 1; i < 3; i++) {
        sizes_of[i] = check_value_of(env, args->at[i], sizes);
        if (sizes_of[i]->kind == EXPR_error) return sizes_of[i];
    }
    Expr *each = expr_new(c->arena, EXPR_lambda, e->loc), *grid = expr_new(c->arena, EXPR_call, e->loc);
    each->decl = decl_new(c->arena, DECL_func, e->loc, NULL);
    each->decl->flavour = FUNC_lambda;
    each->decl->parent = env->decl;
    each->decl->body_expr = e;
    e->a = args->at[0];
    grid->a = expr_new(c->arena, EXPR_name, e->loc);
    grid->a->name = name_from(c->names, "__run_grid");
    for (int i = 1; i < 3; i++) vec_push(c->arena, &grid->args, sizes_of[i]);
    vec_push(c->arena, &grid->args, each);
    return check_call(env, grid);
}

/* ---- assembly */

/* Its type is what the place wants: nothing is said of what follows from it. */
Expr *check_assembly(Env *env, Expr *e) {
    set_foreign(env, e->loc, "it is written in the assembly of another target");
    e->type = ERROR_TYPE(env->c);
    return e;
}

/* ---- C expressions */

typedef struct Rename {
    const char *c_name, *name;
} Rename;

/* Functions of C that the library has under another name; those with an f at the end are found without it. */
static const Rename renamed[] = {
    {"fabs", "abs"},
    {"fmin", "min"},
    {"fmax", "max"},
    {"nearbyint", "rint"},
    {"frac", "frac"},
    {"reciprocal", "rcp"},
    {"labs", "abs"},
    {"llabs", "abs"},
    {"calcSafeRadians", "radians"},
    {"__float_as_int", "asint"},
    {"__float_as_uint", "asuint"},
    {"__int_as_float", "asfloat"},
    {"__uint_as_float", "asfloat"},
};

static bool is_library_function(Checker *c, Str name) {
    const Decl *decl = check_prelude_decl(c, format_text(c->arena, "%.*s", STR_ARG(name)));
    return decl && decl->kind == DECL_func;
}

/* What Slang calls a function of C; empty: nothing. */
static Str library_name(Checker *c, Str name) {
    static const char *const prefixes[] = {"F16_", "F32_", "F64_", "I32_", "U32_", "I64_", "U64_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (str_starts(name, prefixes[i])) name.at += 4, name.len -= 4;
    Str without = {name.at, name.len - (name.len > 1 && name.at[name.len - 1] == 'f')};
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
        Str c_name = str_of(renamed[i].c_name);
        if (str_eq(name, c_name) || str_eq(without, c_name)) return str_of(renamed[i].name);
    }
    if (is_library_function(c, name)) return name;
    if (is_library_function(c, without)) return without;
    return (Str){NULL, 0};
}

typedef struct Translation {
    Env *env;
    const char *at, *end;
    Text out;
    const char *why; /* it cannot be translated */
} Translation;

/* $0 is the first argument, which in a method is `this`. */
static const char *argument_name(Env *env, int index) {
    if (env->sig->has_this && index-- == 0) return "this";
    if (index >= env->sig->nparams || !env->sig->params[index].decl) return NULL;
    return env->sig->params[index].decl->name->text;
}

static void translate_argument(Translation *t) {
    Checker *c = t->env->c;
    const char *after = t->at + 1, *name = NULL;
    if (after < t->end && isdigit((unsigned char)*after)) {
        name = argument_name(t->env, *after - '0');
        after++;
    } else if (t->end - after > 2 && memcmp(after, "P_", 2) == 0) { /* $P_sqrt: the form for the type */
        t->at = after + 2;
        return;
    }
    if (name) text_add(&t->out, str_of(name));
    else t->why = format_text(c->arena, "'%.*s' in its text", (int)(t->end - t->at), t->at);
    t->at = after;
}

static bool is_type(Checker *c, Str word) {
    const Decl *decl = check_prelude_decl(c, format_text(c->arena, "%.*s", STR_ARG(word)));
    static const char *const types[] = {"float", "double", "int", "uint", "bool", "half"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (str_eq(word, str_of(types[i]))) return true;
    return str_ends(word, "_t") || (decl && decl->kind != DECL_func);
}

static void translate_word(Translation *t) {
    Checker *c = t->env->c;
    const char *start = t->at;
    while (t->at < t->end && (isalnum((unsigned char)*t->at) || *t->at == '_')) t->at++;
    Str word = {start, (int)(t->at - start)};
    bool member = t->out.len && text_str(&t->out).at[t->out.len - 1] == '.';
    if (t->end - t->at >= 2 && t->at[0] == ':' && t->at[1] == ':') { /* std:: */
        t->at += 2;
        return;
    }
    if (isdigit((unsigned char)*start) || member || is_type(c, word)) {
        text_add(&t->out, word);
        return;
    }
    Str name = library_name(c, word);
    if (name.len) text_add(&t->out, name);
    else t->why = format_text(c->arena, "the library has no function '%.*s'", STR_ARG(word));
}

static bool is_one_word(Str text) {
    for (int i = 0; i < text.len; i++)
        if (!isalnum((unsigned char)text.at[i]) && text.at[i] != '_') return false;
    return text.len > 0;
}

/* "sqrtf" alone is called with all arguments. */
static void add_all_arguments(Translation *t) {
    int count = t->env->sig->nparams + t->env->sig->has_this;
    for (int i = 0; i < count; i++) {
        const char *name = argument_name(t->env, i);
        text_printf(&t->out, "%s%s", i ? ", " : "(", name ? name : "");
    }
    text_add(&t->out, count ? STR(")") : STR("()"));
}

static const Text *translate(Translation *t, Str text) {
    t->at = text.at, t->end = text.at + text.len;
    while (t->at < t->end && !t->why) {
        if (*t->at == '$') translate_argument(t);
        else if (isalnum((unsigned char)*t->at) || *t->at == '_') translate_word(t);
        else text_char(&t->out, *t->at++);
    }
    if (t->why) return NULL;
    if (is_one_word(text)) add_all_arguments(t);
    return &t->out;
}

/* The statement that the text stands for; checked in vain first, as nobody wrote what would be complained
 * about. */
static bool become_statement(Env *env, Stmt *stmt, SourceFile *file) {
    Checker *c = env->c;
    bool gives_nothing = env->sig->result->kind == TYPE_void || env->sig->is_init;
    stmt->kind = gives_nothing ? STMT_expr : STMT_return;
    stmt->expr = syntax_parse_expr(c->config.syntax, file);
    if (stmt->expr) check_stmt(env, stmt);
    return stmt->expr != NULL;
}

static bool means_something(Env *env, Loc loc, SourceFile *file) {
    Checker *c = env->c;
    int swallowed = c->diags->swallowed;
    Stmt *trial = stmt_new(c->arena, STMT_return, loc);
    c->diags->muted++;
    bool fine = become_statement(env, trial, file);
    c->diags->muted--;
    return fine && c->diags->swallowed == swallowed;
}

void check_intrinsic_asm(Env *env, Stmt *stmt) {
    Checker *c = env->c;
    Translation t = {.env = env, .out = {.arena = c->arena}};
    const Text *text = env->sig ? translate(&t, stmt->text) : NULL;
    SourceFile *file = NULL;
    if (text) file = source_add(c->sources, name_from(c->names, "__intrinsic_asm"), text_str(text));
    if (file && means_something(env, stmt->loc, file)) become_statement(env, stmt, file);
    else
        set_foreign(env, stmt->loc,
                    format_text(c->arena, "'__intrinsic_asm' is not understood: %s",
                                t.why ? t.why : "its text is no expression of its arguments"));
}

/* __target_intrinsic(cpp, "sqrtf($0)") float f(float x); */
Stmt *target_body(Checker *c, Decl *func) {
    int best = WORDS(targets).count + 1;
    Stmt *stmt = NULL;
    for (int i = 0; i < func->attributes.count; i++) {
        const Attribute *attribute = func->attributes.at[i];
        const ExprVec *args = &attribute->args;
        if (strcmp(attribute->name->text, "__target_intrinsic") != 0 || args->count != 2) continue;
        int rank = rank_of(WORDS(targets), args->at[0]);
        if (rank >= best || args->at[1]->kind != EXPR_string) continue;
        best = rank;
        stmt = stmt_new(c->arena, STMT_intrinsic_asm, attribute->loc);
        stmt->text = args->at[1]->text;
    }
    return stmt;
}
