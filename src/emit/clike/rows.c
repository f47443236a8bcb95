/* Loops over structs that gcc makes vectors of.
 *
 *     for (i = 0; i < n; i++) to[i] = f(from[i]);
 *
 * gcc does several rounds of such a loop at once if the structs have two, three, four or a power of two
 * numbers each. Of others it sees that their numbers lie beside each other, wants to read them together, and
 * cannot. So it is given a pointer for each number and is not told where they come from; then it reads number
 * by number, and computes with vectors. With that many pointers it does not test whether one leads to what
 * another one writes. That was done before the loop, with the test whether all indices are in range
 * (opt/apart.c).
 *
 *     const slope_T at = slope_T_of(from.data);
 *     for (...) { slope_T_item(x, &at, i); ... x->a ... T y; y.a = ...; slope_T_set(&to_at, i, y); }
 *
 * All that a round reads it must have read before it writes, and what it writes are whole elements; or it
 * adds to numbers of an element, where no other thread does at the time, as gradients are in a buffer: then
 * it reads the element first, and writes it after the last sum. It may have several of a buffer, if no other
 * round has one of them: 2 * i and 2 * i + 1. Each has pointers of its own then.
 *
 * Where it chooses between ways, or calls elementary functions, gcc makes vectors of it only where the C
 * library has those for vectors, or all of them come along (elementary.c); elsewhere structs are left as they
 * are. Such loops have many numbers at work at once, and few registers left for pointers: they are given one,
 * and the step from element to element, which gcc is not told. Where it could compute with neighbouring
 * numbers of an element as well, it would do that, twice: so only these. On arm64 two floats beside each
 * other are read and written as one number of 64 bits: half as many instructions, and as gcc sees no
 * neighbours then, all loops over floats are given one pointer. Of a sine and a cosine of one number it makes
 * one call first, which there is not for vectors. So the cosine is given the number plus zero, which it takes
 * for another one: the cosine is the same, that of -0 as well. */
#include "emit/clike/clike.h"
#include "emit/elementary.h"

enum { FEWEST_NUMBERS = 5, MOST_NUMBERS = 16, MOST_POINTERS = 48, MOST_STRIDE = 16, MOST_CALLS = 8 };

typedef struct Search {
    const Printer *printer;
    const Inst *loop;
    const Val *counter;
    Row rows[MOST_ROWS];
    int count, pointers, depth;
    bool writes, refused, pays;
    /* once loops inside are written out, all that a round has for itself is in registers (ir/atonce.c) */
    bool is_straight;
    bool nests;           /* has loops inside */
    bool chooses;         /* between ways, or calls functions that there are for vectors */
    bool computes, calls; /* such functions: those that come along (elementary.c), others */
    bool turns, doubles;  /* among the former are sines or cosines; some in double */
} Search;

/* ---- which structs */

/* How many numbers, all of the type; -1: there is something else, or another type. */
static int count_numbers(const Type *type, const Type **number) {
    if (type_is_float(type) || type->kind == TYPE_int || type->kind == TYPE_uint) {
        if (*number && *number != type) return -1;
        *number = type;
        return type->kind == TYPE_half ? -1 : 1;
    }
    if (type->kind == TYPE_vector || (type->kind == TYPE_array && type_length(type) > 0)) {
        int each = count_numbers(type->args[0], number);
        int64_t length = type->kind == TYPE_vector ? type_count(type) : type_length(type);
        return each < 0 || length > MOST_NUMBERS ? -1 : each * (int)length;
    }
    const Record *record = type->kind == TYPE_record ? type_record(type) : NULL;
    int count = record && record->nfields ? 0 : -1;
    for (int i = 0; i < (record ? record->nfields : 0) && count >= 0; i++) {
        int each = count_numbers(record->fields[i].type, number);
        count = each < 0 ? -1 : count + each;
    }
    return count;
}

static const Type *element_of(const Inst *access) { return access->results[0]->type->args[0]; }

static int numbers_of(const Inst *access) {
    const Type *number = NULL;
    int count = count_numbers(element_of(access), &number);
    bool is_even = (count & (count - 1)) == 0;
    return count < FEWEST_NUMBERS || count > MOST_NUMBERS || is_even ? 0 : count;
}

/* ---- which loops */

static Row *row_of(Search *search, const Val *address) {
    const Val *root = ir_root((Val *)(uintptr_t)address);
    for (int i = 0; i < search->count; i++)
        if (root == search->rows[i].access->results[0]) return &search->rows[i];
    return NULL;
}

/* Does it lead to what a round has for itself? Parameters of what it calls do, or to what is looked at where
 * it is passed. */
static bool is_own(const Search *search, const Val *address) {
    const Val *root = ir_root((Val *)(uintptr_t)address);
    if (!search->is_straight && clike_is_indexed_by_data(ir_resolve((Val *)(uintptr_t)address))) return false;
    if (search->depth && root->kind == VAL_param) return true;
    if (root->kind != VAL_inst || root->inst->op != OP_var) return false;
    return search->depth || inst_contains(search->loop, root);
}

static bool stays_as_it_is(const Val *address) {
    const Val *root = ir_root((Val *)(uintptr_t)address);
    if (root->kind != VAL_inst || root->inst->op != OP_global) return false;
    return root->inst->global->kind == GLOBAL_const || root->inst->global->kind == GLOBAL_uniform;
}

/* The number of the round times `each`, and `first` more. Sums and products of 64 bits do not wrap where they
 * are in range. */
static bool find_index(const Search *search, const Val *index, Row *row) {
    int64_t first, each;
    row->each = 1;
    if (index->type->kind == TYPE_int64 && index->kind == VAL_inst && index->inst->op == OP_add &&
        val_is_int(inst_operand(index->inst, 1), &first)) {
        row->first = first;
        index = inst_operand(index->inst, 0);
    }
    if (index->type->kind == TYPE_int64 && index->kind == VAL_inst && index->inst->op == OP_mul &&
        val_is_int(inst_operand(index->inst, 1), &each)) {
        row->each = each;
        index = inst_operand(index->inst, 0);
    }
    return val_unconverted(index) == search->counter && 0 <= row->first && row->first < row->each &&
           row->each <= MOST_STRIDE;
}

static void look_at_access(Search *search, const Inst *inst) {
    Row found = {.access = inst, .numbers = numbers_of(inst)}, *row = &found;
    bool fits = find_index(search, inst_operand(inst, 1), &found) && inst_has(inst, INST_UNCHECKED) &&
                search->count < MOST_ROWS && !inst_contains(search->loop, ir_resolve(inst->args[0]));
    search->refused |= !fits;
    if (!fits) return;
    search->rows[search->count++] = found;
    search->pointers += row->numbers;
    search->pays |= row->numbers > 0;
}

static void look_at_read(Search *search, const Val *address) {
    Row *row = row_of(search, address);
    if (row) {
        row->is_read = true;
        search->refused |= search->writes;
    } else {
        search->refused |= !is_own(search, address) && !stays_as_it_is(address);
    }
}

/* In what is called, nothing but what belongs to the round can be written. */
static void look_at_write(Search *search, const Inst *inst) {
    bool is_at_top = inst->parent == search->loop->regions[1];
    Row *row = is_at_top ? row_of(search, inst->args[0]) : NULL;
    if (!row) {
        search->refused |= !is_own(search, inst->args[0]);
        return;
    }
    search->writes = true;
    search->refused |= row->last && row->last->op == OP_atomic;
    bool is_whole = row->numbers == 0 && ir_resolve(inst->args[0]) == row->access->results[0],
         is_simple = search->is_straight || is_whole;
    if (!row->last) row->last = is_simple ? inst : emit_last_part(inst, row->access);
    search->refused |= !row->last;
}

static void look_at_sum(Search *search, const Inst *inst) {
    bool is_at_top = inst->parent == search->loop->regions[1];
    Row *row = is_at_top && clike_is_plain_sum(search->printer, inst) ? row_of(search, inst->args[0]) : NULL;
    bool is_stored = row && row->last && row->last->op != OP_atomic;
    search->refused |= !row || is_stored || clike_is_indexed_by_data(ir_resolve(inst->args[0]));
    if (search->refused) return;
    search->writes = row->is_read = true;
    row->last = inst;
}

static void look_at(void *user, Inst *inst);

static void look_at_call(Search *search, const Inst *inst) {
    const Func *callee = inst->callee;
    for (int i = 0; i < inst->nargs; i++) {
        if (inst->args[i]->type->kind != TYPE_pointer) continue;
        bool is_read = clike_is_const_param(&callee->params[i]);
        if (is_read) look_at_read(search, inst->args[i]);
        else search->refused |= !is_own(search, inst->args[i]);
    }
    if (!callee->body || search->depth >= MOST_CALLS) search->refused = true;
    if (search->refused) return;
    search->depth++;
    region_walk(callee->body, look_at, search);
    search->depth--;
}

static void look_at(void *user, Inst *inst) {
    Search *search = user;
    if (search->refused) return;
    bool is_computed = search->depth == 0 && clike_comes_along(inst);
    search->chooses |= inst->op == OP_if || emit_is_for_vectors(inst);
    search->computes |= is_computed;
    search->turns |= is_computed && clike_is_turn(inst);
    search->doubles |= is_computed && clike_is_turn(inst) && inst->results[0]->type->kind == TYPE_double;
    search->calls |= !is_computed && emit_is_for_vectors(inst);
    switch ((Op)inst->op) {
    case OP_load: look_at_read(search, inst->args[0]); break;
    case OP_copy:
        look_at_read(search, inst->args[1]);
        look_at_write(search, inst);
        break;
    case OP_store:
    case OP_zero: look_at_write(search, inst); break;
    case OP_call: look_at_call(search, inst); break;
    case OP_atomic: look_at_sum(search, inst); break;
    case OP_if:
    case OP_var:
    case OP_yield: break;
    case OP_return: search->refused |= search->depth == 0; break;
    case OP_buffer_elem:
        if (search->depth) search->refused = true;
        else look_at_access(search, inst);
        break;
    case OP_loop:
        search->nests = true;
        search->refused |= !search->is_straight;
        break;
    default:
        if (search->is_straight &&
            (op_has(inst->op, OP_TAPE) || inst->op == OP_tape_open || inst->op == OP_tape_close))
            break;
        search->refused |= inst->nregions || (op_is_elementary(inst->op) && !emit_is_for_vectors(inst)) ||
                           inst->op == OP_rem || !op_has(inst->op, OP_PURE);
    }
}

static const Val *buffer_of(const Row *row) { return inst_operand(row->access, 0); }

static bool is_apart_param(const Val *buffer) {
    return buffer->kind == VAL_param && !buffer->region->owner &&
           (buffer->region->func->params[buffer->index].flags & PARAM_APART);
}

/* Never the same memory: of one buffer, other elements. */
static bool are_apart(const Row *one, const Row *other) {
    const Val *a = buffer_of(one), *b = buffer_of(other);
    if (a == b) return one->each == other->each && one->first != other->first;
    return ir_are_marked_apart(one->access->apart, other->access->apart) ||
           (is_apart_param(a) && is_apart_param(b));
}

/* It writes an element; no two accesses lead to one. */
static bool is_in_order(const Search *search) {
    bool writes = false;
    for (int i = 0; i < search->count; i++) {
        writes |= search->rows[i].last != NULL;
        for (int k = 0; k < i; k++) {
            const Row *one = &search->rows[i], *other = &search->rows[k];
            bool may_meet = buffer_of(one) == buffer_of(other) || one->last || other->last;
            if (may_meet && !are_apart(one, other)) return false;
        }
    }
    return writes;
}

/* ---- the loop */

static bool are_rounds_apart(const Printer *p, const Inst *loop, Search *search) {
    LoopTest test;
    if (!p->dialect->has_rows || p->options->level < 2) return false;
    if (loop->nargs != 1 || !clike_counts_up(loop, loop, &test)) return false;
    search->printer = p;
    search->loop = loop;
    search->counter = loop->regions[1]->params[test.index];
    region_walk(loop->regions[1], look_at, search);
    return !search->refused && is_in_order(search) && (!search->chooses || clike_has_vectors(p));
}

static bool find_rows(const Printer *p, const Inst *loop, Search *search) {
    *search = (Search){0};
    return are_rounds_apart(p, loop, search) && search->pays && search->pointers <= MOST_POINTERS;
}

static bool begin(Printer *p, const Inst *loop) {
    FuncState *at = p->at;
    Search search;
    if (at->rows.loop || !find_rows(p, loop, &search)) return false;
    at->rows.loop = loop;
    at->rows.chooses = search.chooses;
    bool calls = search.calls || (search.doubles && !at->tried.any);
    at->rows.computes = search.computes && !calls;
    at->rows.count = search.count;
    memcpy(at->rows.at, search.rows, sizeof search.rows);
    return true;
}

bool clike_turns_rows_anew(const Printer *p, const Inst *loop) {
    Search search;
    if (!find_rows(p, loop, &search) || !search.turns || search.calls) return false;
    for (int i = 0; i < search.count; i++)
        if (search.rows[i].last && search.rows[i].is_read) return false;
    return true;
}

static bool is_of_rows(const void *printer, const Inst *inst) {
    Search search;
    return inst->op == OP_loop && find_rows(printer, inst, &search);
}

bool clike_has_rows(const Printer *p, const Func *func) { return region_find(func->body, is_of_rows, p); }

/* ---- the functions */

typedef struct Path {
    const char *condition; /* of compilers that are given this */
    Text of, get, set;
    bool by_step; /* one pointer for all of them, and a step that is hidden; else a pointer for each */
    int number, count;
    bool in_twos; /* are they read and written: floats are, by step */
} Path;

/* The place is a number of the struct, `at` where it is in memory. */
static void print_by_step(Path *path, int number, const char *at, const char *place) {
    bool has_other = path->in_twos && (number | 1) < path->count;
    if (!has_other) {
        text_printf(&path->get, "    x.%s = %s;\n", place, at);
        text_printf(&path->set, "    %s = x.%s;\n", at, place);
    } else if (number % 2 == 0) {
        text_printf(&path->get, "    SLOPE_GET_TWO(&%s, x.%s, ", at, place);
        text_printf(&path->set, "    SLOPE_PUT_TWO(&%s, x.%s, ", at, place);
    } else {
        text_printf(&path->get, "x.%s);\n", place);
        text_printf(&path->set, "x.%s);\n", place);
    }
}

static void print_number(Printer *p, Path *path, const char *place) {
    int number = path->number++, count = path->count;
    if (!path->by_step) {
        text_printf(&path->of, "    at.number[%d] = &data->%s;\n    __asm__(\"\" : \"+r\"(at.number[%d]));\n",
                    number, place, number);
        text_printf(&path->get, "    x.%s = at->number[%d][%d * i];\n", place, number, count);
        text_printf(&path->set, "    at->number[%d][%d * i] = x.%s;\n", number, count, place);
        return;
    }
    if (number == 0)
        text_printf(&path->of,
                    "    at.data = &data->%s;\n    at.step = %d;\n    __asm__(\"\" : \"+r\"(at.data), "
                    "\"+r\"(at.step));\n",
                    place, count);
    print_by_step(path, number, clike_format(p, "at->data[at->step * i + %d]", number), place);
}

static void print_path(Printer *p, Path *path, const Type *type, const char *place) {
    if (type_is_scalar(type)) {
        print_number(p, path, place);
    } else if (type->kind == TYPE_vector) {
        for (int i = 0; i < type_count(type); i++)
            print_path(p, path, type->args[0], clike_lane(p, type, place, i));
    } else if (type->kind == TYPE_array) {
        for (int i = 0; i < type_length(type); i++)
            print_path(p, path, type->args[0], clike_format(p, "%s[%d]", place, i));
    } else {
        const Record *record = type_record(type);
        for (int i = 0; i < record->nfields; i++)
            print_path(p, path, record->fields[i].type,
                       clike_format(p, "%s%s%s", place, *place ? "." : "", clike_field(p, type, i)));
    }
}

/* Compilers, by what the loop does, that are not to see them as they are; the name of their type says
 * likewise. */
static const char *hidden_from(Printer *p, const char **suffix) {
    bool computes = p->at->rows.computes;
    *suffix = computes ? "_computed" : p->at->rows.chooses ? "_called" : "";
    if (!p->at->rows.chooses) return "defined(__GNUC__) && !defined(__clang__)";
    clike_helper(p, computes ? "SLOPE_OWN_SINES" : "SLOPE_FOR_VECTORS");
    return computes ? "defined(SLOPE_FOR_VECTORS_22) || SLOPE_OWN_SINES" : "defined(SLOPE_FOR_VECTORS_22)";
}

/* How the numbers of an element are found, and what each of the functions does with them: for some compilers,
 * and for the rest. */
typedef struct Paths {
    Path at[2];
    int count;
    const char *name, *type, *number;
} Paths;

static void add_path(Printer *p, Paths *paths, const Type *element, Path path) {
    path.of = path.get = path.set = (Text){.arena = &p->arena};
    print_path(p, &path, element, "");
    paths->at[paths->count++] = path;
}

static Paths paths_of(Printer *p, const char *name, const Type *element, const char *condition) {
    const Type *number = NULL;
    int count = count_numbers(element, &number);
    bool is_float = number->kind == TYPE_float, chooses = p->at->rows.chooses;
    Paths paths = {.name = name, .type = clike_type(p, element), .number = clike_type(p, number)};
    if (is_float && !chooses)
        add_path(p, &paths, element,
                 (Path){.condition = "SLOPE_IN_TWOS", .by_step = true, .count = count, .in_twos = true});
    add_path(
        p, &paths, element,
        (Path){.condition = condition, .by_step = chooses, .count = count, .in_twos = chooses && is_float});
    return paths;
}

static void print_type(Printer *p, const Paths *paths) {
    const char *name = paths->name;
    text_add(
        &p->helpers,
        STR("/* An array of structs. gcc makes vectors of a loop over them only if it cannot see that their "
            "numbers lie beside each other. */\n"));
    for (int i = 0; i < paths->count; i++) {
        const Path *path = &paths->at[i];
        const char *members =
            path->by_step ? "data; int64_t step" : clike_format(p, "number[%d]", path->count);
        text_printf(&p->helpers, "%s %s\n", i ? "#elif" : "#if", path->condition);
        text_printf(&p->helpers, "typedef struct %s { %s *%s; } %s;\n", name, paths->number, members, name);
        text_printf(&p->helpers, "static inline %s %s_of(%s *data) {\n    %s at;\n%s    return at;\n}\n",
                    name, name, paths->type, name, path->of.at);
    }
    text_printf(&p->helpers, "#else\ntypedef struct %s { %s *data; } %s;\n", name, paths->type, name);
    text_printf(&p->helpers,
                "static inline %s %s_of(%s *data) {\n    %s at = {data};\n    return at;\n}\n#endif\n", name,
                name, paths->type, name);
}

/* With how a round begins that reads one: number by number, or where it is, from where clang reads what it
 * needs when it needs it. */
static void print_get(Printer *p, const Paths *paths) {
    const char *type = paths->type, *name = paths->name;
    const char *head = clike_format(p, "static inline %s %s_get(const %s *at, int64_t i)", type, name, name);
    const char *item = clike_format(p, "#define %s_item(name, at, i) const %s", name, type);
    for (int i = 0; i < paths->count; i++)
        text_printf(&p->helpers,
                    "%s %s\n%s {\n    %s x;\n%s    return x;\n}\n"
                    "%s name##_read = %s_get(at, i), *const name = &name##_read\n",
                    i ? "#elif" : "#if", paths->at[i].condition, head, type, paths->at[i].get.at, item, name);
    text_printf(&p->helpers,
                "#else\n#define %s_get(at, i) ((at)->data[i])\n%s *const name = &(at)->data[i]\n#endif\n",
                name, item);
}

static void print_set(Printer *p, const Paths *paths) {
    const char *head = clike_format(p, "static inline void %s_set(const %s *at, int64_t i, %s x)",
                                    paths->name, paths->name, paths->type);
    for (int i = 0; i < paths->count; i++)
        text_printf(&p->helpers, "%s %s\n%s {\n%s}\n", i ? "#elif" : "#if", paths->at[i].condition, head,
                    paths->at[i].set.at);
    text_printf(&p->helpers, "#else\n%s { at->data[i] = x; }\n#endif\n", head);
}

/* The type of the pointers, or a function, which is called like it with an end. */
static const char *numbers(Printer *p, const Inst *access, const char *end) {
    const Type *element = element_of(access);
    const char *suffix, *condition = hidden_from(p, &suffix);
    const char *type = clike_format(p, "slope_%s%s", clike_type(p, element), suffix);
    const char *name = clike_format(p, "%s%s", type, end);
    if (!clike_begin_helper(p, name)) return name;
    Paths paths = paths_of(p, type, element, condition);
    bool in_twos = paths.at[0].in_twos, is_get = strcmp(end, "_get") == 0;
    if (in_twos) clike_helper(p, !*end ? "SLOPE_IN_TWOS" : is_get ? "SLOPE_GET_TWO" : "SLOPE_PUT_TWO");
    if (!*end) print_type(p, &paths);
    else if (is_get) print_get(p, &paths);
    else print_set(p, &paths);
    return name;
}

void clike_begin_rows(Printer *p, const Inst *loop) {
    FuncState *at = p->at;
    if (!begin(p, loop)) return;
    for (int i = 0; i < at->rows.count; i++) {
        Row *row = &at->rows.at[i];
        if (!row->numbers) continue;
        const char *type = numbers(p, row->access, "");
        row->name = clike_local(p, "at");
        clike_line(p, "const %s %s = %s_of(%s.data);", type, row->name, type,
                   clike_in(p, clike_operand(p, row->access, 0), LEVEL_primary));
    }
}

/* ---- elements that are read number by number
 *
 * gcc makes vectors of the numbers of structs that follow each other by reading all of them. It sorts those of 16 doubles in four steps, which are six instructions for each number of two
 * structs; and of five, seven, nine ... numbers it makes none. If it does not know how far they are apart, it reads them one by one. */

static bool is_far(const Inst *access, const Val *counter) {
    if (access->op != OP_buffer_elem || ir_resolve(access->args[1]) != counter) return false;
    Layout layout = type_layout(element_of(access), LAYOUT_scalar);
    enum { LEAST = 8 * sizeof(double) };
    bool is_sorted =
        layout.align == sizeof(double) && layout.stride >= LEAST && !(layout.stride & (layout.stride - 1));
    return is_sorted || numbers_of(access);
}

static bool is_far_access(const void *counter, const Inst *inst) { return is_far(inst, counter); }

static void begin_far(Printer *p, const Inst *loop, const Val *counter) {
    if (!region_find(loop->regions[1], is_far_access, counter)) return;
    p->at->far.counter = counter;
    p->at->far.name = clike_local(p, "step");
    clike_line(p, "const int64_t %s = %s();", p->at->far.name, clike_helper(p, "slope_one"));
}

const char *clike_far_index(Printer *p, const Inst *access) {
    const Val *counter = p->at->far.counter;
    if (!counter || !is_far(access, counter)) return NULL;
    return clike_format(p, "%s * %s", clike_operand(p, access, 1).text, p->at->far.name);
}

/* ---- what is said of the loop */

const char *clike_rows_wish(Printer *p, const Inst *loop) {
    Search straight = {.is_straight = true};
    bool has_rows = p->at->rows.loop == loop;
    int at_once = clike_has_vectors(p) ? emit_rounds_at_once(&p->reached, loop) : 1;
    if (!has_rows && !are_rounds_apart(p, loop, &straight)) return NULL;
    const char *independent = has_rows ? clike_helper(p, "SLOPE_INDEPENDENT") : NULL;
    if (!has_rows && clike_has_vectors(p) && (at_once > 1 || straight.nests))
        begin_far(p, loop, straight.counter);
    if (at_once == 1) return independent;
    const char *wish = clike_format(p, "%s(%d)", clike_helper(p, "SLOPE_AT_ONCE"), at_once);
    return independent ? clike_format(p, "%s %s", independent, wish) : wish;
}

static const Row *find_row(const Printer *p, const Inst *access) {
    for (int i = 0; i < p->at->rows.count; i++) {
        const Row *row = &p->at->rows.at[i];
        if (row->access == access && row->name) return row;
    }
    return NULL;
}

bool clike_row_element(Printer *p, const Inst *access, Value *result) {
    const Row *row = find_row(p, access);
    if (!row) return false;
    const char *name = clike_local(p, "item"), *type = clike_type(p, element_of(access));
    const char *get = row->is_read || !row->last ? numbers(p, access, "_get") : NULL;
    const char *index = clike_operand(p, access, 1).text;
    if (!row->last) clike_line(p, "%s_item(%s, &%s, %s);", numbers(p, access, ""), name, row->name, index);
    else if (get) clike_line(p, "%s %s = %s(&%s, %s);", type, name, get, row->name, index);
    else clike_line(p, "%s %s;", type, name);
    *result = clike_value(name, LEVEL_primary);
    result->is_place = row->last != NULL;
    result->named = true;
    result->constant = !row->last;
    return true;
}

void clike_end_row(Printer *p, const Inst *store) {
    for (int i = 0; i < p->at->rows.count; i++) {
        const Row *row = &p->at->rows.at[i];
        if (!row->name || row->last != store) continue;
        clike_line(p, "%s(&%s, %s, %s);", numbers(p, row->access, "_set"), row->name,
                   clike_operand(p, row->access, 1).text, p->at->values[row->access->results[0]->id].text);
    }
}

bool clike_is_called_in_rows(const Printer *p, const Inst *inst) {
    const Inst *loop = p->at->rows.loop;
    return loop && p->at->rows.chooses && inst_contains(loop, inst->results[0]);
}

bool clike_is_computed_in_rows(const Printer *p, const Inst *inst) {
    return clike_is_called_in_rows(p, inst) && p->at->rows.computes;
}
