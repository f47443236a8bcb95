/* Slang: what a reverse pass keeps. A tape is a struct with an array and a count for each type of number, a
 * local variable of who opens it, and handed on as `inout`. The arrays have as many elements as are ever
 * kept, which follows from constant trip counts; where it does not, as many as [MaxIters] and --tape say.
 * What did not fit is not a number when it is read, or zero, if it is an integer; a variable that the caller
 * can look at says that this was so. */
#include "emit/clike/slang.h"

/* ---- how many */

static int64_t room_for(Printer *p, int64_t exact, int64_t promised, Loc loose) {
    int64_t given = p->file->tape;
    if (exact >= 0) return exact;
    if (promised < 0 && !given)
        clike_fail(p, loose,
                   "how many numbers the reverse pass keeps is not known here; say [MaxIters(n)] at the "
                   "loop, or --tape N for at most N of each type");
    return promised > given ? promised : given;
}

void slang_check_tapes(Printer *p) {
    p->tape_room = arena_array(&p->arena, int64_t, TAPE_KINDS);
    p->tape_known = arena_array(&p->arena, bool, TAPE_KINDS);
    p->tape_used = arena_array(&p->arena, bool, TAPE_KINDS);
    for (int kind = 0; kind < TAPE_KINDS; kind++) p->tape_known[kind] = true;
    for (int i = 0; i < p->reached.tapes.count; i++) {
        const TapeRoom *tape = p->reached.tapes.entries[i].value;
        for (int kind = 0; kind < TAPE_KINDS; kind++) {
            int64_t room = room_for(p, tape->exact[kind], tape->promised[kind], tape->loose);
            p->tape_known[kind] &= tape->exact[kind] >= 0;
            if (room > p->tape_room[kind]) p->tape_room[kind] = room;
        }
    }
}

/* ---- the type */

static const Type *type_of(Printer *p, int kind) {
    return type_basic(p->module->types, (TypeKind)(TYPE_bool + kind));
}

void slang_tape_type(Printer *p, Text *out) {
    if (clike_begin_helper(p, "SlopeTape")) return; /* nobody asked for it */
    bool all_known = true;
    for (int kind = 0; kind < TAPE_KINDS; kind++) all_known &= p->tape_known[kind] || !p->tape_used[kind];
    if (!all_known)
        text_add(out, STR("/* A reverse pass had to keep more than there is room for: the derivative is not "
                          "to be used. "
                          "*/\nstatic bool slope_tape_full = false;\n\n"));
    text_add(out, STR("/* What a reverse pass keeps. */\nstruct SlopeTape {\n"));
    for (int kind = 0; kind < TAPE_KINDS; kind++) {
        const Type *type = type_of(p, kind);
        const char *word = clike_word(p, type);
        if (!p->tape_used[kind]) continue;
        text_printf(out, "    %s %s_kept[%lld];\n    int64_t %s_count;\n", clike_type(p, type), word,
                    (long long)p->tape_room[kind], word);
    }
    text_add(out, STR("};\n\n"));
}

/* ---- operations */

/* $T is the type, $W its word, $N how many fit, $0 zero, $- what is read where nothing was kept; $! says so,
 * where that can be. */
typedef struct TapeFunction {
    const char *name, *text;
} TapeFunction;

static const TapeFunction functions[] = {
    {"push", "void slope_push_$W(inout SlopeTape tape, $T v) {\n"
             "    if (tape.$W_count < $N) tape.$W_kept[tape.$W_count] = v;\n$!    tape.$W_count = "
             "tape.$W_count + 1LL;\n}\n\n"},
    {"pop", "$T slope_pop_$W(inout SlopeTape tape) {\n    tape.$W_count = tape.$W_count - 1LL;\n"
            "    return tape.$W_count < $N ? tape.$W_kept[tape.$W_count] : $-;\n}\n\n"},
    {"grow", "/* Room for so many more; where it begins. */\nint64_t slope_grow_$W(inout SlopeTape tape, "
             "int64_t more) {\n"
             "    const int64_t first = tape.$W_count;\n    tape.$W_count = first + more;\n"
             "    for (int64_t i = first; i < first + more && i < $N; i++) tape.$W_kept[i] = $0;\n    return "
             "first;\n}\n\n"},
    {"keep", "void slope_keep_$W(inout SlopeTape tape, int64_t i, $T v) {\n    if (i < $N) tape.$W_kept[i] = "
             "v;\n$!}\n\n"},
    {"kept",
     "$T slope_kept_$W(inout SlopeTape tape, int64_t i) {\n    return i < $N ? tape.$W_kept[i] : $-;\n}\n\n"},
};

static bool is_known(const Printer *p, const Type *type) { return p->tape_known[type->kind - TYPE_bool]; }

static const char *replacement(Printer *p, char letter, const Type *type) {
    switch (letter) {
    case 'W': return clike_word(p, type);
    case 'T': return clike_type(p, type);
    case 'N': return clike_format(p, "%lldLL", (long long)p->tape_room[type->kind - TYPE_bool]);
    case '0': return slang_zero(p, type);
    case '!': return is_known(p, type) ? "" : "    else slope_tape_full = true;\n";
    default: return type_is_float(type) ? slang_not_a_number(p, type) : slang_zero(p, type);
    }
}

/* Even a loop that never runs has its place. */
static void need_room(Printer *p, const Type *type) {
    int64_t *room = &p->tape_room[type->kind - TYPE_bool];
    p->tape_used[type->kind - TYPE_bool] = true;
    if (*room == 0) *room = 1;
}

static const char *function(Printer *p, const char *what, const Type *type) {
    const char *name = clike_format(p, "slope_%s_%s", what, clike_word(p, type)), *at = "";
    need_room(p, type);
    if (!clike_begin_helper(p, name)) return name;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].name, what) == 0) at = functions[i].text;
    for (; *at; at++) {
        if (*at != '$') text_char(&p->helpers, *at);
        else text_add(&p->helpers, str_of(replacement(p, *++at, type)));
    }
    return name;
}

static const char *count_of(Printer *p, const char *tape, const Type *type) {
    need_room(p, type);
    return clike_format(p, "%s.%s_count", tape, clike_word(p, type));
}

static const char *element(Printer *p, const char *tape, const Type *type, const char *index) {
    need_room(p, type);
    return clike_format(p, "%s.%s_kept[%s]", tape, clike_word(p, type), index);
}

static void open_tape(Printer *p, const Inst *inst) {
    const char *name = clike_name_value(p, inst->results[0]);
    clike_begin_helper(p, "SlopeTape");
    clike_line(p, "SlopeTape %s = {};", name);
    p->at->values[inst->results[0]->id] = clike_value(name, LEVEL_primary);
}

/* Where more elements begin. */
static void grow(Printer *p, const Inst *inst, const char *tape, const char *more) {
    const char *count = count_of(p, tape, inst->type);
    if (!inst_has(inst, INST_RAW)) {
        clike_set_statement(p, inst,
                            clike_format(p, "%s(%s, %s)", function(p, "grow", inst->type), tape, more));
        return;
    }
    clike_set_statement(p, inst, count);
    clike_line(p, "%s = %s + %s;", count, count, more);
}

static void load(Printer *p, const Inst *inst, const char *tape, const char *index) {
    const Type *type = inst->results[0]->type;
    clike_set_statement(p, inst,
                        is_known(p, type)
                            ? element(p, tape, type, index)
                            : clike_format(p, "%s(%s, %s)", function(p, "kept", type), tape, index));
}

static void store(Printer *p, const Inst *inst, const char *tape, const char *index) {
    const Type *type = inst->args[2]->type;
    const char *value = clike_operand(p, inst, 2).text;
    if (is_known(p, type)) clike_line(p, "%s = %s;", element(p, tape, type, index), value);
    else clike_line(p, "%s(%s, %s, %s);", function(p, "keep", type), tape, index, value);
}

void slang_tape(Printer *p, const Inst *inst) {
    const char *tape = inst->nargs ? clike_operand(p, inst, 0).text : NULL;
    Value second = inst->nargs > 1 ? clike_operand(p, inst, 1) : (Value){0};
    switch ((Op)inst->op) {
    case OP_tape_open: open_tape(p, inst); break;
    case OP_tape_close: break;
    case OP_tape_push:
        clike_line(p, "%s(%s, %s);", function(p, "push", inst->args[1]->type), tape, second.text);
        break;
    case OP_tape_pop:
        clike_set_statement(p, inst,
                            clike_format(p, "%s(%s)", function(p, "pop", inst->results[0]->type), tape));
        break;
    case OP_tape_grow: grow(p, inst, tape, clike_in(p, second, LEVEL_product)); break;
    case OP_tape_shrink: {
        const char *count = count_of(p, tape, inst->type);
        clike_line(p, "%s = %s - %s;", count, count, clike_in(p, second, LEVEL_product));
        break;
    }
    case OP_tape_load: load(p, inst, tape, second.text); break;
    default: store(p, inst, tape, second.text);
    }
}
