/* The IR as text. parse.c reads it back; printing what was read gives the same text again.
 *
 *   ; a comment
 *   struct Ray {
 *     origin: float3
 *     t: float
 *   } diff Ray map [0, 1]
 *
 *   global const @table: float[2] = [0.5, 1.5]
 *
 *   func @f(%x: float diff, %n: int, %a: inout float[8] diff) -> float fwd bwd normal {
 *     %i, %s = loop (%i.1: int = 0, %s.1: float = 0.0) {
 *       %go = lt %i.1, %n
 *       yield %go
 *     } do {
 *       %p = elem %a, %i.1
 *       %0 = load %p
 *       %1 = fma %x, %0, %s.1
 *       %2 = add %i.1, 1
 *       yield %2, %1
 *     }
 *     return %s
 *   }
 *
 * Values are %name, with a number behind a dot where the name is taken; without a name, a number. A
 * differential ends with a quote (%x'). The regions of a loop share the list of carried values, unless their
 * names differ: then `do` and `step` have lists of their own. Constants are written as 1 (int), 1.0 (float),
 * true, and others with their type: 1:uint, 0.5:half, 0:float3 (all lanes). A result shows its type where
 * that does not follow from the operands. Loops and blocks that some break or continue names have a label,
 * #1. A region that ends with a bare yield does not show it, and an `else` that does nothing is left out.
 * `add free`: a sum of differentials, in any order.
 *
 * The words after the parameters of a function are its flags; `by_value` and `by_address` of parameters only
 * where it is not the rule. */
#include "ir.h"

#include <math.h>

typedef struct FlagName {
    uint32_t flag;
    const char *name; /* NULL: end of the table */
} FlagName;

static const FlagName func_flags[] = {
#define FUNC_FLAG(flag, word) {flag, word},
#include "ir/words.def"
    {0, NULL}};
static const FlagName param_flags[] = {
#define PARAM_FLAG(flag, word) {flag, word},
#include "ir/words.def"
    {0, NULL}};
static const char *const dir_names[] = {
#define DIRECTION(dir, word) [dir] = word,
#include "ir/words.def"
};
static const char *const global_kinds[] = {
#define GLOBAL_KIND(kind, word) [kind] = word,
#include "ir/words.def"
};
static const char *const space_words[] = {
#define SPACE(space, word) [space] = word,
#include "ir/words.def"
};
static const char *const atomic_names[] = {
#define ATOMIC_KIND(kind, word) [kind] = word,
#include "ir/words.def"
};

typedef struct Printer {
    Text *out;
    const Module *module;
    Map record_names; /* Record -> char *, as shown */
    Map taken;        /* Name -> Record, those names */
    Map fields;       /* Record -> Map, Name -> Field: the first of that name */
    VEC(const Record *) records;
    const Func *func;
    const Val **vals;  /* by id, those that have a name */
    const char **show; /* by id */
    Map used;          /* Name -> how often, as pointer */
    int nameless;
    Map labels; /* Inst -> number + 1, as pointer */
    int nlabels;
    int indent;
    bool one_line; /* no regions */
} Printer;

static Arena *arena_of(const Printer *p) { return p->out->arena; }
static void add(Printer *p, const char *text) { text_add(p->out, str_of(text)); }

static void *count_as_pointer(int count) { return (void *)(intptr_t)count; }
static int count_of(const Map *map, const void *key) { return (int)(intptr_t)map_get(map, PTR_KEY(key)); }

/* ---- names */

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_plain(Str name) {
    if (name.len == 0 || !is_letter(name.at[0]) || name.at[name.len - 1] == '.') return false;
    for (int i = 1; i < name.len; i++)
        if (!is_letter(name.at[i]) && !is_digit(name.at[i]) && name.at[i] != '.') return false;
    return true;
}

/* x.12: what looks like a name made unique. */
static bool has_number(Str name) {
    int i = name.len;
    while (i > 0 && is_digit(name.at[i - 1])) i--;
    return i < name.len && i > 0 && name.at[i - 1] == '.';
}

static void add_quoted(Text *out, Str s) {
    text_char(out, '"');
    for (int i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.at[i];
        if (c == '"' || c == '\\') text_printf(out, "\\%c", c);
        else if (c == '\n') text_add(out, STR("\\n"));
        else if (c < 32 || c == 127) text_printf(out, "\\x%02x", c);
        else text_char(out, (char)c);
    }
    text_char(out, '"');
}

static void add_name(Text *out, Str name) {
    if (is_plain(name)) text_add(out, name);
    else add_quoted(out, name);
}

static Str name_str(Name name) { return name ? (Str){name->text, name->len} : STR(""); }

static void add_symbol(Printer *p, Name name) {
    text_char(p->out, '@');
    add_name(p->out, name_str(name));
}

/* ---- types; records by names of their own */

static void collect_type(Printer *p, const Type *type);

static void name_record(Printer *p, const Record *record) {
    Str base = name_str(record->name);
    Text text = {.arena = arena_of(p)};
    Name unique;
    for (int n = 0;; n++) {
        text = (Text){.arena = arena_of(p)};
        text_add(&text, base);
        if (n) text_printf(&text, ".%d", n);
        unique = name_of(p->module->names, text_str(&text));
        if (!map_has(&p->taken, PTR_KEY(unique))) break;
    }
    map_put(arena_of(p), &p->taken, PTR_KEY(unique), count_as_pointer(1));
    Text shown = {.arena = arena_of(p)};
    bool bare = is_plain(text_str(&text)) && !ir_type_from_name(p->module->types, text_str(&text));
    if (bare) text_add(&shown, text_str(&text));
    else add_quoted(&shown, text_str(&text));
    map_put(arena_of(p), &p->record_names, PTR_KEY(record), shown.at);
}

static void collect_record(Printer *p, const Record *record) {
    if (map_has(&p->record_names, PTR_KEY(record))) return;
    name_record(p, record);
    vec_push(arena_of(p), &p->records, record);
    for (int i = 0; i < record->nfields; i++) collect_type(p, record->fields[i].type);
    if (record->has_diff && record->diff.differential) collect_type(p, record->diff.differential);
}

static void collect_type(Printer *p, const Type *type) {
    if (!type) return;
    if (type->kind == TYPE_record) collect_record(p, type_record(type));
    for (int i = 0; i < type->nargs; i++) collect_type(p, type->args[i]);
}

static void add_type(Printer *p, const Type *type) {
    if (!type) add(p, "?");
    else if (type->kind == TYPE_record) {
        const char *name = map_get(&p->record_names, PTR_KEY(type_record(type)));
        if (name) add(p, name);
        else add_name(p->out, name_str(type->name));
    } else if (type->kind == TYPE_pointer) {
        add_type(p, type->args[0]);
        text_char(p->out, '*');
        if (type_space(type)) text_printf(p->out, " %s", space_words[type_space(type)]);
    } else if (type->kind == TYPE_array) {
        add_type(p, type->args[0]);
        text_char(p->out, '[');
        if (type->nargs == 2) type_print(p->out, type->args[1]);
        text_char(p->out, ']');
    } else if (type->kind == TYPE_buffer && type->args[0]->kind != TYPE_void) {
        add(p, type_buffer_name((BufferKind)type->number));
        text_char(p->out, '<');
        add_type(p, type->args[0]);
        add(p, type->flags & TYPE_HANDLE ? ">.Handle" : ">");
    } else type_print(p->out, type);
}

static void add_types(Printer *p, const Type *const *types, int count) {
    if (count == 0) return;
    add(p, " -> ");
    if (count > 1) text_char(p->out, '(');
    for (int i = 0; i < count; i++) {
        if (i) add(p, ", ");
        add_type(p, types[i]);
    }
    if (count > 1) text_char(p->out, ')');
}

/* ---- values: every one gets a name before anything is printed */

static void set_shown(Printer *p, const Val *v, const char *text) {
    if (v->id >= p->func->nvals) return;
    p->vals[v->id] = v;
    p->show[v->id] = text;
}

static void name_val(Printer *p, const Val *v, Name name) {
    Text text = {.arena = arena_of(p)};
    text_char(&text, '%');
    if (!name) text_printf(&text, "%d", p->nameless++);
    else {
        int before = count_of(&p->used, name);
        map_put(arena_of(p), &p->used, PTR_KEY(name), count_as_pointer(before + 1));
        add_name(&text, name_str(name));
        if (before || has_number(name_str(name))) text_printf(&text, ".%d", before);
    }
    if (v->flags & VAL_DIFF) text_char(&text, '\'');
    set_shown(p, v, text.at);
}

static bool shares_params(const Region *a, const Region *b) {
    if (a->nparams != b->nparams) return false;
    for (int i = 0; i < a->nparams; i++)
        if (a->params[i]->name != b->params[i]->name || a->params[i]->flags != b->params[i]->flags)
            return false;
    return true;
}

static void name_region(Printer *p, const Region *region);

static void name_params(Printer *p, const Inst *inst, int index) {
    const Region *region = inst->regions[index], *first = inst->regions[0];
    bool shared = index > 0 && shares_params(first, region);
    for (int i = 0; i < region->nparams; i++)
        if (shared) set_shown(p, region->params[i], p->show[first->params[i]->id]);
        else name_val(p, region->params[i], region->params[i]->name);
}

static void name_inst(Printer *p, const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++) name_val(p, inst->results[i], inst->results[i]->name);
    if (map_has(&p->labels, PTR_KEY(inst)))
        map_put(arena_of(p), &p->labels, PTR_KEY(inst), count_as_pointer(++p->nlabels));
    for (int i = 0; i < inst->nregions; i++) {
        name_params(p, inst, i);
        name_region(p, inst->regions[i]);
    }
}

static void name_region(Printer *p, const Region *region) {
    for (const Inst *inst = region->first; inst; inst = inst->next) name_inst(p, inst);
}

static void find_targets(void *user, Inst *inst) {
    Printer *p = user;
    if (inst->op == OP_break || inst->op == OP_continue)
        if (inst->target) map_put(arena_of(p), &p->labels, PTR_KEY(inst->target), count_as_pointer(0));
}

static void name_body(Printer *p, const Func *func) {
    if (!func->body) return;
    region_walk(func->body, find_targets, p);
    for (int i = 0; i < func->body->nparams; i++) {
        bool declared = i < func->nparams;
        name_val(p, func->body->params[i], declared ? func->params[i].name : func->body->params[i]->name);
    }
    name_region(p, func->body);
}

static void begin_func(Printer *p, const Func *func) {
    p->func = func;
    p->vals = arena_array(arena_of(p), const Val *, func->nvals);
    p->show = arena_array(arena_of(p), const char *, func->nvals);
    p->used = p->labels = (Map){0};
    p->nameless = p->nlabels = 0;
    name_body(p, func);
}

static FloatWidth width_of(const Type *type) {
    return type->kind == TYPE_half ? WIDTH_half : type->kind == TYPE_float ? WIDTH_float : WIDTH_double;
}

static void add_const(Printer *p, const Val *v) {
    TypeKind kind = v->type->kind;
    if (kind == TYPE_bool) {
        add(p, v->integer ? "true" : "false");
        return;
    }
    if (type_is_float(v->type)) text_float(p->out, v->real, width_of(v->type));
    else if (kind == TYPE_uint64) text_printf(p->out, "%llu", (unsigned long long)v->integer);
    else text_printf(p->out, "%lld", type_is_scalar(v->type) ? (long long)v->integer : 0);
    if (kind == TYPE_int || kind == TYPE_float) return;
    text_char(p->out, ':');
    add_type(p, v->type);
}

static void add_val(Printer *p, const Val *v) {
    if (!v) add(p, "%<none>");
    else if (v->kind == VAL_const) add_const(p, v);
    else if (p->func && v->id < p->func->nvals && p->vals[v->id] == v) add(p, p->show[v->id]);
    else text_printf(p->out, "%%?%u", (unsigned)v->id);
}

static void add_args(Printer *p, const Inst *inst, const char *before) {
    for (int i = 0; i < inst->nargs; i++) {
        add(p, i ? ", " : before);
        add_val(p, inst->args[i]);
    }
}

/* ---- instructions */

static void add_line(Printer *p) {
    text_char(p->out, '\n');
    for (int i = 0; i < p->indent; i++) add(p, "  ");
}

static void print_inst(Printer *p, const Inst *inst);

static bool is_bare_yield(const Inst *inst) {
    return inst->op == OP_yield && inst->nargs == 0 && inst->tag == 0;
}

static bool does_nothing(const Region *region) {
    return region->first && region->first == region->last && is_bare_yield(region->first);
}

static void print_region(Printer *p, const Region *region) {
    if (p->one_line) {
        add(p, "{...}");
        return;
    }
    text_char(p->out, '{');
    p->indent++;
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        if (!inst->next && is_bare_yield(inst)) break;
        add_line(p);
        print_inst(p, inst);
    }
    p->indent--;
    if (!does_nothing(region)) add_line(p);
    text_char(p->out, '}');
}

static void add_result_types(Printer *p, const Inst *inst) {
    const Type **types = arena_array(arena_of(p), const Type *, inst->nresults);
    for (int i = 0; i < inst->nresults; i++) types[i] = inst->results[i]->type;
    add_types(p, types, inst->nresults);
}

static void print_if(Printer *p, const Inst *inst) {
    text_char(p->out, ' ');
    add_val(p, inst->args[0]);
    add_result_types(p, inst);
    text_char(p->out, ' ');
    print_region(p, inst->regions[0]);
    if (does_nothing(inst->regions[1])) return;
    add(p, " else ");
    print_region(p, inst->regions[1]);
}

static void print_switch(Printer *p, const Inst *inst) {
    text_char(p->out, ' ');
    add_val(p, inst->args[0]);
    add_result_types(p, inst);
    for (int i = 0; i < inst->nregions; i++) {
        add(p, i < inst->ncases ? " case " : " default ");
        for (int j = 0; i < inst->ncases && j < inst->cases[i].nvalues; j++)
            text_printf(p->out, j ? ", %lld" : "%lld", (long long)inst->cases[i].values[j]);
        if (i < inst->ncases && inst->cases[i].nvalues) text_char(p->out, ' ');
        print_region(p, inst->regions[i]);
    }
}

static void add_label(Printer *p, const Inst *inst) {
    int label = count_of(&p->labels, inst);
    if (label) text_printf(p->out, " #%d", label);
}

static void add_hints(Printer *p, LoopHints hints) {
    if (hints.max_iters) text_printf(p->out, " max_iters %lld", (long long)hints.max_iters);
    if (hints.unroll) text_printf(p->out, " unroll %lld", (long long)hints.unroll);
    if (hints.checkpoint) text_printf(p->out, " checkpoint %lld", (long long)hints.checkpoint);
    if (hints.together) text_printf(p->out, " together");
    if (hints.few) text_printf(p->out, " few");
    if (hints.wide) text_printf(p->out, " wide");
    if (hints.ways) text_printf(p->out, " ways");
    if (hints.takes) text_printf(p->out, " takes");
}

static void print_loop(Printer *p, const Inst *inst) {
    static const char *const words[] = {"", " do ", " step "};
    add_label(p, inst);
    add_hints(p, inst->hints);
    for (int r = 0; r < inst->nregions && r < 3; r++) {
        const Region *region = inst->regions[r];
        add(p, words[r]);
        bool shared = r > 0 && shares_params(inst->regions[0], region);
        for (int i = 0; i < region->nparams && !shared; i++) {
            add(p, i ? ", " : r ? "(" : " (");
            add_val(p, region->params[i]);
            if (r) continue;
            add(p, ": ");
            add_type(p, region->params[i]->type);
            add(p, " = ");
            add_val(p, i < inst->nargs ? inst->args[i] : NULL);
        }
        if (region->nparams && !shared) text_char(p->out, ')');
        if (!r || (region->nparams && !shared)) text_char(p->out, ' ');
        print_region(p, region);
    }
}

static void print_block(Printer *p, const Inst *inst) {
    add_label(p, inst);
    add_result_types(p, inst);
    text_char(p->out, ' ');
    print_region(p, inst->regions[0]);
}

static const Map *fields_of(Printer *p, const Record *record) {
    Map *fields = map_get(&p->fields, PTR_KEY(record));
    if (fields) return fields;
    fields = arena_new(arena_of(p), Map);
    for (int i = record->nfields - 1; i >= 0; i--)
        if (record->fields[i].name)
            map_put(arena_of(p), fields, PTR_KEY(record->fields[i].name), &record->fields[i]);
    map_put(arena_of(p), &p->fields, PTR_KEY(record), fields);
    return fields;
}

static void print_field(Printer *p, const Inst *inst) {
    add_args(p, inst, " ");
    const Type *type = inst->args[0] ? inst->args[0]->type : NULL;
    const Type *target = type && type->kind == TYPE_pointer ? type->args[0] : NULL;
    const Record *record = target && target->kind == TYPE_record ? type_record(target) : NULL;
    Name name =
        record && inst->index >= 0 && inst->index < record->nfields ? record->fields[inst->index].name : NULL;
    bool is_first = name && map_get(fields_of(p, record), PTR_KEY(name)) == &record->fields[inst->index];
    add(p, ", ");
    if (is_first && is_plain(name_str(name))) text_add(p->out, name_str(name));
    else text_printf(p->out, "%d", inst->index);
}

static void print_shuffle(Printer *p, const Inst *inst) {
    add_args(p, inst, " ");
    add(p, ", ");
    int count = type_count(inst->results[0]->type);
    bool letters = true;
    for (int i = 0; i < count; i++) letters &= inst->lanes[i] < 4;
    for (int i = 0; i < count; i++)
        if (letters) text_char(p->out, "xyzw"[inst->lanes[i]]);
        else text_printf(p->out, i ? ", %d" : "[%d", inst->lanes[i]);
    if (!letters) text_char(p->out, ']');
}

static void print_call(Printer *p, const Inst *inst) {
    add(p, " ");
    if (inst->callee) add_symbol(p, inst->callee->name);
    text_char(p->out, '(');
    add_args(p, inst, "");
    text_char(p->out, ')');
}

static void print_text(Printer *p, const Inst *inst) {
    text_char(p->out, ' ');
    add_quoted(p->out, inst->text);
    add_args(p, inst, ", ");
}

static void print_jump(Printer *p, const Inst *inst) {
    int label = count_of(&p->labels, inst->target);
    text_printf(p->out, label ? " #%d" : " #?", label);
    add_args(p, inst, " ");
}

static void print_typed(Printer *p, const Inst *inst) {
    text_char(p->out, ' ');
    add_type(p, inst->type);
    add_args(p, inst, " ");
}

static void print_body(Printer *p, const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_if: print_if(p, inst); break;
    case OP_switch: print_switch(p, inst); break;
    case OP_loop: print_loop(p, inst); break;
    case OP_block: print_block(p, inst); break;
    case OP_call: print_call(p, inst); break;
    case OP_break:
    case OP_continue: print_jump(p, inst); break;
    case OP_printf:
    case OP_abort: print_text(p, inst); break;
    case OP_field: print_field(p, inst); break;
    case OP_shuffle: print_shuffle(p, inst); break;
    case OP_var:
    case OP_tape_grow:
    case OP_tape_shrink:
    case OP_tape_reach: print_typed(p, inst); break;
    case OP_global:
        text_char(p->out, ' ');
        if (inst->global) add_symbol(p, inst->global->name);
        break;
    case OP_atomic:
        text_printf(p->out, " %s", atomic_names[inst->index]);
        add_args(p, inst, " ");
        break;
    case OP_buffer_elem:
    case OP_buffer_bytes:
        if (inst->apart.nest)
            text_printf(p->out, " apart(%d, %d, %d)", inst->apart.nest, inst->apart.which, inst->apart.count);
        add_args(p, inst, " ");
        break;
    case OP_barrier:
    case OP_thread_id: text_printf(p->out, " %d", inst->index); break;
    default: add_args(p, inst, " "); break;
    }
}

static bool shows_type(const Printer *p, const Inst *inst) {
    bool tells_itself =
        op_has(inst->op, OP_REGIONS | OP_CALLS) || inst->op == OP_shuffle || inst->nresults != 1;
    return !tells_itself && ir_result_type((Module *)(uintptr_t)p->module, inst) != inst->results[0]->type;
}

static void print_flags(Printer *p, const Inst *inst) {
    unsigned op = inst->op;
#define INST_FLAG(flag, word, is_of)                                                                         \
    if (*word && (is_of) && inst_has(inst, flag)) add(p, " " word);
#include "ir/words.def"
}

static void print_inst(Printer *p, const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++) {
        if (i) add(p, ", ");
        add_val(p, inst->results[i]);
    }
    if (shows_type(p, inst)) {
        add(p, ": ");
        add_type(p, inst->results[0]->type);
    }
    if (inst->nresults) add(p, " = ");
    if (inst->tag) add(p, inst->tag == TAG_diff ? "diff " : "mixed ");
    add(p, inst->op < OP_COUNT ? op_info[inst->op].name : "?");
    print_flags(p, inst);
    if (inst->op < OP_COUNT) print_body(p, inst);
}

/* ---- functions */

static void print_param(Printer *p, int index) {
    const Param *param = &p->func->params[index];
    if (p->func->body && index < p->func->body->nparams) add_val(p, p->func->body->params[index]);
    else if (!param->name) text_printf(p->out, "%%%d", index);
    else {
        text_char(p->out, '%');
        add_name(p->out, name_str(param->name));
        if (has_number(name_str(param->name))) add(p, ".0");
    }
    add(p, ": ");
    if (param->dir != DIR_in) text_printf(p->out, "%s ", dir_names[param->dir]);
    add_type(p, param->type);
    for (const FlagName *flag = param_flags; flag->name; flag++)
        if (param->flags & flag->flag) text_printf(p->out, " %s", flag->name);
    bool by_address = param->flags & PARAM_BY_ADDRESS;
    if (by_address != param_goes_by_address(param->dir, param->type))
        add(p, by_address ? " by_address" : " by_value");
}

static void add_reference(Printer *p, const char *word, const Func *func, bool *first) {
    if (!func) return;
    add(p, *first ? "" : ", ");
    *first = false;
    add(p, word);
    add_symbol(p, func->name);
}

static void print_custom(Printer *p, const Custom *custom) {
    bool first = true;
    if (!custom->complete && !custom->fwd && !custom->bwd && !custom->substitute && !custom->primal) return;
    add(p, custom->complete ? " custom(" : " incomplete custom(");
    add_reference(p, "fwd ", custom->fwd, &first);
    add_reference(p, "bwd ", custom->bwd, &first);
    add_reference(p, "substitute ", custom->substitute, &first);
    add_reference(p, "primal ", custom->primal, &first);
    text_char(p->out, ')');
}

static void print_attributes(Printer *p, const Func *func) {
    for (const FlagName *flag = func_flags; flag->name; flag++)
        if (func->flags & flag->flag) text_printf(p->out, " %s", flag->name);
    if (func->group_size[0])
        text_printf(p->out, " threads(%d, %d, %d)", func->group_size[0], func->group_size[1],
                    func->group_size[2]);
    if (func->derivation.of) {
        add(p, func->derivation.mode == 2 ? " bwd_diff(" : " fwd_diff(");
        add_symbol(p, func->derivation.of->name);
        text_char(p->out, ')');
    }
    print_custom(p, &func->custom);
}

static void print_named_func(Printer *p, const Func *func) {
    p->func = func;
    add(p, "func ");
    add_symbol(p, func->name);
    text_char(p->out, '(');
    for (int i = 0; i < func->nparams; i++) {
        if (i) add(p, ", ");
        print_param(p, i);
    }
    text_char(p->out, ')');
    add_types(p, func->results, func->nresults);
    print_attributes(p, func);
    if (func->body) {
        text_char(p->out, ' ');
        print_region(p, func->body);
    }
    text_char(p->out, '\n');
}

static void print_func(Printer *p, const Func *func) {
    begin_func(p, func);
    print_named_func(p, func);
}

/* ---- records and globals */

static void print_record_diff(Printer *p, const Record *record) {
    const RecordDiff *diff = &record->diff;
    add(p, " diff ");
    if (diff->differential) add_type(p, diff->differential);
    else add(p, "none");
    for (int i = 0; diff->field_map && i < record->nfields; i++)
        text_printf(p->out, i ? ", %d" : " map [%d", diff->field_map[i]);
    if (diff->field_map) add(p, record->nfields ? "]" : " map []");
    if (diff->zero) add(p, " zero "), add_symbol(p, diff->zero->name);
    if (diff->add) add(p, " add "), add_symbol(p, diff->add->name);
    if (diff->opaque) add(p, " opaque");
    if (diff->optional) add(p, " optional");
}

static void print_record(Printer *p, const Record *record) {
    text_printf(p->out, "struct %s {", (const char *)map_get(&p->record_names, PTR_KEY(record)));
    for (int i = 0; i < record->nfields; i++) {
        add(p, "\n  ");
        add_name(p->out, name_str(record->fields[i].name));
        add(p, ": ");
        add_type(p, record->fields[i].type);
    }
    add(p, record->nfields ? "\n}" : "}");
    if (record->has_diff) print_record_diff(p, record);
    add(p, "\n\n");
}

static void print_global(Printer *p, const Global *global) {
    text_printf(p->out, "global %s ", global_kinds[global->kind]);
    add_symbol(p, global->name);
    add(p, ": ");
    add_type(p, global->type);
    for (int i = 0; i < global->ndata && global->data; i++) {
        add(p, i ? ", " : " = [");
        add_val(p, global->data[i]);
    }
    if (global->data) add(p, global->ndata ? "]" : " = []");
    if (global->init) add(p, " init "), add_symbol(p, global->init->name);
    if (global->layout == LAYOUT_std140) add(p, " std140");
    text_char(p->out, '\n');
}

/* ---- entries */

static void collect_inst_types(void *user, Inst *inst) {
    Printer *p = user;
    collect_type(p, inst->type);
    for (int i = 0; i < inst->nresults; i++) collect_type(p, inst->results[i]->type);
}

static void collect_func_types(Printer *p, const Func *func) {
    for (int i = 0; i < func->nparams; i++) collect_type(p, func->params[i].type);
    for (int i = 0; i < func->nresults; i++) collect_type(p, func->results[i]);
    if (func->body) region_walk(func->body, collect_inst_types, p);
}

static Printer begin(Text *out, const Module *module) {
    Printer p = {.out = out, .module = module};
    for (int i = 0; i < module->records.count; i++) collect_record(&p, module->records.at[i]);
    return p;
}

void ir_print_module(Text *out, const Module *module) {
    Printer p = begin(out, module);
    for (int i = 0; i < module->globals.count; i++) collect_type(&p, module->globals.at[i]->type);
    for (int i = 0; i < module->funcs.count; i++) collect_func_types(&p, module->funcs.at[i]);
    for (int i = 0; i < p.records.count; i++) print_record(&p, p.records.at[i]);
    for (int i = 0; i < module->globals.count; i++) print_global(&p, module->globals.at[i]);
    for (int i = 0; i < module->funcs.count; i++) {
        if (i || module->globals.count) text_char(out, '\n');
        print_func(&p, module->funcs.at[i]);
    }
}

void ir_print_func(Text *out, const Func *func) {
    Printer p = begin(out, func->module);
    print_func(&p, func);
}

/* Values from outside: what is put into the halves only later. */
static void name_outside(void *user, Inst *inst) {
    Printer *p = user;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = inst->args[i];
        if (v && v->kind != VAL_const && v->id < p->func->nvals && p->vals[v->id] != v)
            name_val(p, v, v->name);
    }
}

void ir_print_halves(Text *out, const Func *first, const Func *second) {
    Printer p = begin(out, first->module);
    begin_func(&p, first);
    name_body(&p, second);
    region_walk(first->body, name_outside, &p);
    region_walk(second->body, name_outside, &p);
    print_named_func(&p, first);
    text_char(out, '\n');
    print_named_func(&p, second);
}

void ir_print_inst(Text *out, const Inst *inst) {
    Printer p = begin(out, inst->func->module);
    begin_func(&p, inst->func);
    p.one_line = true;
    print_inst(&p, inst);
}
