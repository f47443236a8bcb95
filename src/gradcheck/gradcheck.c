/* slope_gradcheck: which functions are checked, their compilation, and the run.
 *
 * All functions are compiled at once: each with its derivatives, and with a copy of itself in double
 * (widen.c) that stands still where derivatives do not flow (hold.c). */
#include "gradcheck/gradcheck.h"

typedef VEC(Subject *) Subjects;

enum { RECORD_ROOM = 1 << 16 }; /* values held in one run */

/* ---- names */

/* Overloads show their parameters. */
static void tell_apart(Check *check, const Subjects *subjects, Subject *s) {
    bool unique = true;
    for (int i = 0; i < subjects->count; i++)
        unique &= subjects->at[i] == s || strcmp(subjects->at[i]->short_name, s->short_name) != 0;
    s->name = s->short_name;
    if (unique || s->is_generic) return;
    Text text = {.arena = check->arena};
    const FuncSig *sig = check_signature(check->program->unit->checker, s->decl);
    text_printf(&text, "%s(", s->short_name);
    for (int i = 0; i < sig->nparams; i++) {
        if (i) text_add(&text, STR(", "));
        type_print(&text, sig->params[i].type);
    }
    text_char(&text, ')');
    s->name = text.at;
}

/* ---- which functions */

static Subject *new_subject(Check *check, Decl *decl, const char *name) {
    Subject *s = arena_new(check->arena, Subject);
    s->decl = decl;
    s->name = s->short_name = name;
    return s;
}

static bool is_differentiable(Check *check, Decl *decl, DiffMode mode) {
    return check_is_differentiable(check->program->unit->checker, decl, mode);
}

static void collect_function(Check *check, Decl *decl, Subjects *subjects) {
    bool has_body = decl->body || decl->lazy.count;
    if (!has_body || (decl->flags & DECL_REQUIREMENT) || decl->flavour == FUNC_ref) return;
    if (!is_differentiable(check, decl, DIFF_fwd) && !is_differentiable(check, decl, DIFF_bwd)) return;
    Subject *s = new_subject(check, decl, unit_qualified_name(check->program->unit, decl));
    s->is_generic = unit_is_generic(decl);
    if (s->is_generic) s->skip = "it is generic: name an instance of it with -f";
    else {
        check_decl_body(check->program->unit->checker, decl);
        if (decl->sema && decl->sema->foreign) s->skip = "it has no code for this target";
    }
    vec_push(check->arena, subjects, s);
}

static void collect(Check *check, Decl *decl, Subjects *subjects) {
    for (int i = 0; i < decl->members.count; i++) {
        Decl *member = decl->members.at[i];
        switch ((DeclKind)member->kind) {
        case DECL_func: collect_function(check, member, subjects); break;
        case DECL_namespace:
        case DECL_struct:
        case DECL_extension:
        case DECL_property:
        case DECL_subscript: collect(check, member, subjects); break;
        default: break;
        }
    }
}

/* By an expression: an instance of a generic function, a derivative, a function of the library or of another
 * module. */
static SlopeStatus find_by_expression(Check *check, const char *expression, Subjects *subjects) {
    SlopeSession *session = check->session;
    Unit *unit = check->program->unit;
    Expr *expr = unit_parse(unit, expression);
    CheckedFunction found;
    if (!expr || !check_function(unit->checker, unit->module, expr, &found)) return SLOPE_STATUS_misuse;
    if (!is_differentiable(check, found.decl, DIFF_fwd) && !is_differentiable(check, found.decl, DIFF_bwd)) {
        diag_report(session->diags, DIAG_gradcheck_no_derivative, 0, expression);
        return SLOPE_STATUS_misuse;
    }
    Subject *s = new_subject(check, found.decl, format_text(check->arena, "%s", expression));
    s->subst = found.subst;
    s->nmodes = found.nmodes;
    memcpy(s->modes, found.modes, sizeof s->modes);
    vec_push(check->arena, subjects, s);
    return SLOPE_STATUS_ok;
}

static SlopeStatus find_subjects(Check *check, Subjects *subjects) {
    const char *wanted = check->options->function;
    Subjects all = {0};
    collect(check, check->program->unit->module, &all);
    for (int i = 0; i < all.count; i++) tell_apart(check, &all, all.at[i]);
    for (int i = 0; i < all.count; i++) {
        Subject *s = all.at[i];
        bool named = wanted && (strcmp(wanted, s->short_name) == 0 || strcmp(wanted, s->name) == 0);
        if (!wanted || (named && !s->is_generic)) vec_push(check->arena, subjects, s);
    }
    if (!wanted || subjects->count) return SLOPE_STATUS_ok;
    return find_by_expression(check, wanted, subjects);
}

/* ---- compilation */

static void complete_custom(Module *m, Func *func) {
    if (!func->custom.complete && m->hooks.complete_diff) m->hooks.complete_diff(m->hooks.user, func);
}

static Func *substitute_of(Module *m, Func *func) {
    for (int i = 0; i < 16; i++) { /* in a circle at worst */
        complete_custom(m, func);
        if (!func->custom.substitute) return func;
        func = func->custom.substitute;
    }
    return func;
}

/* What is differentiated calls the primal substitutes, also where no derivative flows; nothing else does. */
static Func *redirect(void *user, const Inst *call, bool *plain) {
    Check *check = user;
    Func *callee = substitute_of(check->widener.module, call->callee);
    *plain = inst_has(call, INST_NO_DIFF) || !gradcheck_is_derived(callee);
    return callee;
}

/* Is there a derivative in that mode of all that it calls and that derivatives flow through? Of a derivative,
 * nobody knows yet. */
static bool can_derive(Check *check, const Subject *s, DiffMode mode) {
    if (s->nmodes) return s->nmodes < (int)sizeof s->modes;
    return check_keeps_derivative(check->program->unit->checker, s->decl, s->subst, mode);
}

static Func *derivative_of(Check *check, const Subject *s, DiffMode mode) {
    uint8_t modes[9];
    if (!can_derive(check, s, mode)) return NULL;
    memcpy(modes, s->modes, sizeof s->modes);
    modes[s->nmodes] = (uint8_t)mode;
    Func *func = lower_func(check->program->unit->lowerer, s->decl, s->subst, modes, s->nmodes + 1);
    func->flags |= FUNC_EXPORT;
    return func;
}

static SlopeStatus request(Check *check, const Subjects *subjects) {
    Unit *unit = check->program->unit;
    for (int i = 0; i < subjects->count; i++) {
        Subject *s = subjects->at[i];
        if (!s->skip) s->skip = gradcheck_signature_trouble(check, s);
        if (!s->skip) s->func = lower_func(unit->lowerer, s->decl, s->subst, s->modes, s->nmodes);
    }
    SlopeStatus status = unit_derive(unit, "lower"); /* what they call tells which derivatives there are */
    for (int i = 0; i < subjects->count && status == SLOPE_STATUS_ok; i++) {
        Subject *s = subjects->at[i];
        if (s->skip) continue;
        s->fwd = derivative_of(check, s, DIFF_fwd);
        s->bwd = derivative_of(check, s, DIFF_bwd);
        if (!s->fwd && !s->bwd) s->skip = "what it calls is not differentiable in the same way";
    }
    return status == SLOPE_STATUS_ok ? unit_derive(unit, NULL) : status;
}

static const char *global_trouble(Check *check, const WidenSurvey *survey) {
    for (int i = 0; i < survey->globals.count; i++) {
        const Global *global = survey->globals.at[i];
        if (global->kind == GLOBAL_uniform && gradcheck_holds_pointer(global->type) &&
            !gradcheck_host_value(check, global))
            return format_text(check->arena, "it reads '%s', which holds a pointer: bind something to it",
                               global->name->text);
    }
    return NULL;
}

/* No derivative was made from the body, nor written: it is zero by definition. */
static bool is_only_treated(const Func *func) {
    return (func->flags & FUNC_TREAT_AS_DIFF) && !func->custom.fwd && !func->custom.bwd;
}

static void widen(Check *check, Subject *s) {
    s->func = substitute_of(check->widener.module, s->func);
    s->bwd_is_custom = s->func->custom.bwd != NULL;
    if (is_only_treated(s->func))
        s->skip = "it is [TreatAsDifferentiable]: its derivative is zero by definition";
    bool plain = !gradcheck_is_derived(s->func);
    if (!s->skip) s->wide = gradcheck_widen(&check->widener, s->func, plain);
    if (!s->skip && !s->wide) s->skip = check->widener.wrong;
    if (s->skip) return;
    s->survey = gradcheck_widen_survey(&check->widener, s->func, plain);
    s->narrowest = s->survey.narrowest;
    s->cuts_references = gradcheck_cuts_references(check->widener.module, s->func);
    s->skip = global_trouble(check, &s->survey);
    gradcheck_shape(check, s);
}

static void drop_export(Func *func) {
    if (func) func->flags &= ~(uint32_t)FUNC_EXPORT;
}

static void prepare_copies(Check *check, Subjects *subjects) {
    VEC(Func *) roots = {0};
    StageTimer timer;
    driver_time_begin(check->session, &timer, "widen");
    for (int i = 0; i < subjects->count; i++) {
        Subject *s = subjects->at[i];
        if (!s->skip) widen(check, s);
        if (s->skip) {
            drop_export(s->fwd);
            drop_export(s->bwd);
            continue;
        }
        s->wide->flags |= FUNC_EXPORT;
        vec_push(check->arena, &roots, s->wide);
    }
    check->hold = gradcheck_hold(check->widener.module, roots.at, roots.count);
    driver_time_end(&timer);
}

static void *call_of(Check *check, Func *func) {
    return func ? driver_find_call(check->program, func) : NULL;
}

static Subject *first_checked(const Subjects *subjects) {
    for (int i = 0; i < subjects->count; i++)
        if (!subjects->at[i]->skip) return subjects->at[i];
    return NULL;
}

static SlopeStatus compile(Check *check, Subjects *subjects) {
    Unit *unit = check->program->unit;
    SlopeStatus status = request(check, subjects);
    if (status != SLOPE_STATUS_ok) return status;
    prepare_copies(check, subjects);
    Subject *first = first_checked(subjects);
    if (!first) return SLOPE_STATUS_ok;
    unit_run_passes(unit, NULL);
    status = driver_compile(check->program, first->wide);
    if (status != SLOPE_STATUS_ok) return status;
    driver_apply_uniforms(check->program);
    check->hold_memory = driver_uniform_address(check->program, check->hold);
    for (int i = 0; i < subjects->count; i++) {
        Subject *s = subjects->at[i];
        if (s->skip) continue;
        s->call = call_of(check, s->wide);
        s->call_fwd[NARROW] = call_of(check, s->fwd);
        s->call_bwd[NARROW] = call_of(check, s->bwd);
        if (!s->call_fwd[NARROW]) s->fwd = NULL;
        if (!s->call_bwd[NARROW]) s->bwd = NULL;
        if (!s->fwd && !s->bwd) s->skip = "no derivative of it could be made";
    }
    return SLOPE_STATUS_ok;
}

static Func *widen_derivative(Check *check, Func *func) {
    Func *wide = func ? gradcheck_widen(&check->widener, func, true) : NULL;
    if (wide) wide->flags |= FUNC_EXPORT;
    return wide;
}

bool gradcheck_make_wide(Check *check, Subject *s) {
    bool done = s->call_fwd[WIDE] || s->call_bwd[WIDE];
    if (s->tried_wide) return done;
    s->tried_wide = true;
    check->widener.funcs[true] = (Map){0}; /* the copies so far count their steps */
    Func *fwd = widen_derivative(check, s->fwd), *bwd = widen_derivative(check, s->bwd);
    if ((s->fwd && !fwd) || (s->bwd && !bwd)) return false;
    unit_run_passes(check->program->unit, NULL);
    if (driver_compile(check->program, fwd ? fwd : bwd) != SLOPE_STATUS_ok) return false;
    s->call_fwd[WIDE] = call_of(check, fwd);
    s->call_bwd[WIDE] = call_of(check, bwd);
    return true;
}

/* A copy in double whose roundings are random, of it and all that it calls. */
static Func *shaken_copy(Check *check, Func *func, const ShakeUnit *as) {
    int before = check->widener.added.count;
    check->widener.funcs[true] = (Map){0}; /* the copies so far are needed as they are */
    Func *copy = widen_derivative(check, func);
    VEC(Func *) copies = {0};
    for (int i = before; i < check->widener.added.count; i++)
        vec_push(check->arena, &copies, check->widener.added.at[i].copy);
    check->widener.funcs[true] = (Map){0};
    if (copy) gradcheck_shake(check->widener.module, check->hold, as, copies.at, copies.count);
    return copy;
}

bool gradcheck_make_shaken(Check *check, Subject *s) {
    if (s->tried_shaken) return s->call_shaken != NULL;
    s->tried_shaken = true;
    static const ShakeUnit half = {0x1p-10, 0x1p-24, 65504}, single = {0x1p-23, 0x1p-149, 0x1.fffffep127};
    const ShakeUnit *as = s->narrowest == TYPE_half ? &half : s->narrowest == TYPE_float ? &single : NULL;
    Func *copy = shaken_copy(check, s->func, NULL);
    Func *fwd = shaken_copy(check, s->fwd, as), *bwd = shaken_copy(check, s->bwd, as);
    if (!copy) return false;
    unit_run_passes(check->program->unit, NULL);
    if (driver_compile(check->program, copy) != SLOPE_STATUS_ok) return false;
    check->hold_memory = driver_uniform_address(check->program, check->hold);
    if (check->hold_memory) memcpy(check->hold_memory, &check->state, sizeof check->state);
    s->call_fwd[SHAKEN] = call_of(check, fwd);
    s->call_bwd[SHAKEN] = call_of(check, bwd);
    s->call_shaken = call_of(check, copy);
    return s->call_shaken != NULL;
}

/* ---- points that the caller gives */

static SlopeTypeKind public_kind(TypeKind kind) {
    return (SlopeTypeKind)(kind - TYPE_bool + SLOPE_TYPE_bool);
}

_Static_assert((int)TYPE_double - (int)TYPE_bool == (int)SLOPE_TYPE_double - (int)SLOPE_TYPE_bool,
               "kinds of scalars are numbered alike");

static const char *input_names(Check *check, const Subject *s) {
    Text text = {.arena = check->arena};
    for (int i = 0; i < s->slots.count && text.len < 200; i++)
        if (s->slots.at[i].in >= 0) text_printf(&text, "%s%s", text.len ? ", " : "", s->slots.at[i].name);
    return text.at ? text.at : "";
}

static int count_values(const char *text) {
    int count = 1;
    for (; *text; text++) count += *text == ',';
    return count;
}

/* What the text says, as a number. */
static bool parse_value(TypeKind kind, const char *word, double *value) {
    union {
        int64_t integer;
        uint64_t bits;
        char bytes[8];
    } scalar = {0};
    if (slope_scalar_parse(public_kind(kind), word, scalar.bytes) != SLOPE_STATUS_ok) return false;
    if (kind >= TYPE_half) *value = gradcheck_get(kind, scalar.bytes);
    else {
        int unused = 64 - (kind == TYPE_bool ? 8 : (int)(8 << (kind - TYPE_int8) / 2));
        bool is_signed = kind != TYPE_bool && (kind - TYPE_int8) % 2 == 0;
        scalar.bits <<= unused;
        *value = is_signed ? (double)(scalar.integer >> unused) : (double)(scalar.bits >> unused);
    }
    return true;
}

static SlopeStatus parse_point(Check *check, const Subject *s, const char *text, double *x) {
    Diags *diags = check->session->diags;
    if (count_values(text) != s->nin) {
        diag_report(diags, DIAG_gradcheck_value_count, 0, s->name, s->nin, input_names(check, s),
                    count_values(text));
        return SLOPE_STATUS_misuse;
    }
    for (int i = 0; i < s->slots.count; i++) {
        const Slot *slot = &s->slots.at[i];
        if (slot->in < 0) continue;
        while (*text == ' ') text++;
        int length = (int)strcspn(text, ","), used = length;
        while (used && text[used - 1] == ' ') used--;
        const char *word = format_text(check->arena, "%.*s", used, text);
        bool fits = parse_value(slot->kind, word, &x[slot->in]);
        if (slot->choices && (x[slot->in] < 1 || x[slot->in] > slot->choices)) fits = false;
        if (!fits) {
            const Type *type = type_basic(&check->program->types, slot->kind);
            diag_report(diags, DIAG_gradcheck_value, 0, slot->in + 1, type_text(check->arena, type), word);
            return SLOPE_STATUS_misuse;
        }
        text += length + (text[length] == ',');
    }
    return SLOPE_STATUS_ok;
}

static SlopeStatus parse_points(Check *check, const Subjects *subjects) {
    const SlopeGradcheckOptions *options = check->options;
    Diags *diags = check->session->diags;
    if (options->point_count == 0) return SLOPE_STATUS_ok;
    if (subjects->count != 1) {
        diag_report(diags, DIAG_gradcheck_one_function, 0);
        return SLOPE_STATUS_misuse;
    }
    Subject *s = subjects->at[0];
    if (s->skip) {
        diag_report(diags, DIAG_gradcheck_skipped, 0, s->name, s->skip);
        return SLOPE_STATUS_misuse;
    }
    s->npoints = options->point_count;
    s->points = arena_array(check->arena, double *, s->npoints);
    for (int i = 0; i < s->npoints; i++) {
        s->points[i] = arena_array(check->arena, double, s->nin);
        SlopeStatus status = parse_point(check, s, options->points[i], s->points[i]);
        if (status != SLOPE_STATUS_ok) return status;
    }
    return SLOPE_STATUS_ok;
}

/* ---- ranges */

/* Is it the part that the name says, or a part of that? */
static bool is_part(const char *part, const char *name, int length) {
    return strncmp(part, name, (size_t)length) == 0 &&
           (!part[length] || part[length] == '.' || part[length] == '[');
}

static bool limit(const Subject *s, const char *name, int length, double low, double high) {
    bool found = false;
    for (int i = 0; i < s->slots.count; i++) {
        Slot *slot = &s->slots.at[i];
        if (slot->in < 0 || !is_part(slot->name, name, length)) continue;
        slot->low = low, slot->high = high, slot->is_limited = true;
        found = true;
    }
    return found;
}

static bool parse_double(const char *word, double *value) {
    return slope_scalar_parse(SLOPE_TYPE_double, word, value) == SLOPE_STATUS_ok;
}

static SlopeStatus read_range(Check *check, const Subjects *subjects, const char *text) {
    const char *equals = strchr(text, '='), *colon = equals ? strchr(equals, ':') : NULL;
    double low, high;
    bool fine =
        colon &&
        parse_double(format_text(check->arena, "%.*s", (int)(colon - equals - 1), equals + 1), &low) &&
        parse_double(colon + 1, &high) && low < high;
    if (!fine) {
        diag_report(check->session->diags, DIAG_gradcheck_range, 0, text);
        return SLOPE_STATUS_misuse;
    }
    bool found = false;
    for (int i = 0; i < subjects->count; i++)
        found |= limit(subjects->at[i], text, (int)(equals - text), low, high);
    if (found) return SLOPE_STATUS_ok;
    diag_report(check->session->diags, DIAG_gradcheck_range_name, 0,
                format_text(check->arena, "%.*s", (int)(equals - text), text));
    return SLOPE_STATUS_misuse;
}

/* Those of the source, then those of the caller. */
static SlopeStatus read_ranges(Check *check, const Subjects *subjects) {
    for (int i = 0; i < subjects->count; i++) {
        const Decl *decl = subjects->at[i]->decl;
        for (int k = 0; k < decl->params.count; k++) {
            const Decl *param = decl->params.at[k];
            const Sema *sema = param->sema;
            if (sema && sema->range && param->name)
                limit(subjects->at[i], param->name->text, param->name->len, sema->range[0], sema->range[1]);
        }
    }
    for (int i = 0; i < check->options->range_count; i++) {
        SlopeStatus status = read_range(check, subjects, check->options->ranges[i]);
        if (status != SLOPE_STATUS_ok) return status;
    }
    return SLOPE_STATUS_ok;
}

/* ---- the run */

static void start_result(Check *check, const Subject *s, SlopeGradcheckResult *result) {
    Position at = source_position(&check->program->sources, s->decl->loc);
    *result = (SlopeGradcheckResult){.function = s->name,
                                     .path = format_text(check->arena, "%s", at.path ? at.path->text : ""),
                                     .line = at.line,
                                     .verdict = s->skip ? SLOPE_VERDICT_skipped : SLOPE_VERDICT_right,
                                     .fwd_error = -1,
                                     .bwd_error = -1,
                                     .identity_error = -1,
                                     .message = s->skip};
}

/* What the derivative leaves out it does not compute wrong; but it is not the derivative of all that was
 * written. */
static const char *lost_text(Check *check, const Subject *s) {
    LocVec lost = check_lost_derivatives(check->program->unit->checker, s->decl);
    if (lost.count == 0) return NULL;
    Text text = {.arena = check->arena};
    text_printf(&text, "right, but %d derivative%s lost: line", lost.count,
                lost.count == 1 ? " is" : "s are");
    for (int i = 0; i < lost.count; i++)
        text_printf(&text, "%s %d", i ? "," : "", source_position(&check->program->sources, lost.at[i]).line);
    return text.at;
}

/* Derivatives go there as well; but only parameters are inputs. */
static const char *unchecked_text(Check *check, const Subject *s) {
    for (int i = 0; i < s->survey.globals.count; i++) {
        const Global *global = s->survey.globals.at[i];
        if (global->kind == GLOBAL_uniform && gradcheck_holds_view(global->type))
            return format_text(check->arena,
                               "right, but the elements of '%s', which is no parameter, were constants",
                               global->name->text);
    }
    return NULL;
}

/* Uniforms get back what the host set; buffers that were made for the check are gone. */
static void clean_up(Check *check) {
    for (int i = 0; i < check->restored.count; i++) {
        const Restored *restored = &check->restored.at[i];
        if (restored->is_buffer) runtime_buffer_free((RtBuffer){restored->data, restored->size});
        else if (restored->is_host) memcpy(restored->data, restored->pristine, restored->size);
        else memset(restored->data, 0, restored->size);
    }
    driver_apply_uniforms(check->program);
}

static void check_one(Check *check, Subject *s, SlopeGradcheckResult *result) {
    if (s->skip) return;
    gradcheck_make_memory(check, s);
    gradcheck_fill_uniforms(check, &s->survey);
    gradcheck_subject(check, s, result);
    bool right = result->verdict == SLOPE_VERDICT_right && !result->message;
    if (right) result->message = lost_text(check, s);
    if (right && !result->message) result->message = unchecked_text(check, s);
}

static void run(Check *check, const Subjects *subjects, SlopeGradcheckResult *results) {
    StageTimer timer;
    driver_time_begin(check->session, &timer, "gradcheck");
    runtime_mute(driver_runtime(check->session), true);
    const SlopeGradcheckOptions *options = check->options;
    check->record = arena_array(check->arena, double, RECORD_ROOM);
    check->state = (HoldState){.values = check->record, .counts = check->counts, .room = RECORD_ROOM};
    for (int i = 0; i < subjects->count; i++) start_result(check, subjects->at[i], &results[i]);
    if (options->report) options->report(options->user, results, 0, subjects->count);
    for (int i = 0; i < subjects->count; i++) {
        check_one(check, subjects->at[i], &results[i]);
        if (options->report) options->report(options->user, results, i + 1, subjects->count);
    }
    clean_up(check);
    driver_time_end(&timer);
}

static SlopeStatus gradcheck(SlopeProgram *program, SlopeProgram *host, const SlopeGradcheckOptions *options,
                             const SlopeGradcheckResult **results, int *count) {
    Check *check = arena_new(&host->arena, Check);
    Subjects subjects = {0};
    *check = (Check){.program = program,
                     .host = host,
                     .session = program->session,
                     .arena = &host->arena,
                     .options = options,
                     .random = {options->seed + 1}};
    check->widener = (Widener){.module = program->unit->ir, .redirect = redirect, .user = check};
    SlopeStatus status = unit_check(program->unit);
    if (status == SLOPE_STATUS_ok) status = find_subjects(check, &subjects);
    if (status == SLOPE_STATUS_ok) status = compile(check, &subjects);
    if (status == SLOPE_STATUS_ok) status = parse_points(check, &subjects);
    if (status == SLOPE_STATUS_ok) status = read_ranges(check, &subjects);
    if (status != SLOPE_STATUS_ok) return status;
    SlopeGradcheckResult *rows = arena_array(check->arena, SlopeGradcheckResult, subjects.count + 1);
    run(check, &subjects, rows);
    *results = rows;
    *count = subjects.count;
    return SLOPE_STATUS_ok;
}

typedef struct Request {
    SlopeProgram *host;
    const SlopeGradcheckOptions *options;
    const SlopeGradcheckResult **results;
    int *count;
} Request;

static SlopeStatus answer(DriverWork *work) {
    const Request *request = work->user;
    return gradcheck(work->program, request->host, request->options, request->results, request->count);
}

static SlopeStatus gradcheck_trapped(SlopeProgram *program, SlopeProgram *host,
                                     const SlopeGradcheckOptions *options,
                                     const SlopeGradcheckResult **results, int *count) {
    SlopeSession *session = host->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(program)) return driver_refused(session);
    if (!driver_list_is_whole(options->points, options->point_count))
        return driver_missing(session, "slope_gradcheck", "options->points");
    if (!driver_list_is_whole(options->ranges, options->range_count))
        return driver_missing(session, "slope_gradcheck", "options->ranges");
    Request request = {host, options, results, count};
    DriverWork work = {.program = program, .user = &request};
    return driver_leave(session, driver_deep(session, answer, &work));
}

SlopeStatus slope_gradcheck(SlopeProgram *host, const SlopeGradcheckOptions *options,
                            const SlopeGradcheckResult **results, int *count) {
    if (!host || !results || !count) return SLOPE_STATUS_misuse;
    static const SlopeGradcheckOptions defaults = {0};
    SlopeSession *session = host->session;
    SlopeProgram *fresh = NULL;
    *results = NULL;
    *count = 0;
    if (host->unit->ir->funcs
            .count) { /* what else was asked for may have errors, and optimised code does not tell where derivatives stop */
        Str text = source_of(&host->sources, host->unit->module->loc)->text;
        SlopeStatus status = slope_load_text(session, host->path->text, text.at, (size_t)text.len, &fresh);
        if (status != SLOPE_STATUS_ok) return status;
    }
    SlopeStatus status =
        gradcheck_trapped(fresh ? fresh : host, host, options ? options : &defaults, results, count);
    slope_program_free(fresh);
    if (session->runtime) runtime_mute(session->runtime, false);
    return status;
}

const char *slope_verdict_name(SlopeVerdict verdict) {
    static const char *const names[] = {"right", "wrong", "unknown", "skipped"};
    return (int)verdict >= 0 && verdict <= SLOPE_VERDICT_skipped ? names[verdict] : "";
}
