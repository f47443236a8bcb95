/* The words of the grammar and the names of built-in types, marked in the table of names once per session, so
 * that to recognise one is to look at a number. */
#include "syntax/parser.h"

typedef struct Word {
    const char *text;
    uint32_t modifiers;
} Word;

static const Word words[KEYWORD_COUNT] = {
#define CONTEXTUAL(name, text, modifiers) [KEYWORD_##name] = {text, modifiers},
#define RESERVED(name, text, modifiers)   [KEYWORD_##name] = {text, modifiers},
#include "syntax/keywords.def"
};

/* Each also as a vector, float3, and as a matrix, float3x4. */
static const char *const scalars[] = {
    "bool",     "int",       "uint",      "half",      "float",    "double",
    "int8_t",   "uint8_t",   "int16_t",   "int32_t",   "uint16_t", "int64_t",
    "uint32_t", "float16_t", "float32_t", "float64_t", "uint64_t",
};

static const char *const plain_types[] = {
    "void",   "size_t", "usize_t",      "intptr_t",          "uintptr_t",
    "String", "dword",  "NativeString", "ByteAddressBuffer", "RWByteAddressBuffer",
};

static const char *const generic_types[] = {
    "vector",
    "matrix",
    "Array",
    "Ptr",
    "Optional",
    "Tuple",
    "DifferentialPair",
    "DifferentialPtrPair",
    "StructuredBuffer",
    "RWStructuredBuffer",
    "ConstantBuffer",
    "ParameterBlock",
    "Buffer",
    "RWBuffer",
    "IFunc",
    "IMutatingFunc",
    "IDifferentiableFunc",
    "IDifferentiableMutatingFunc",
    "Atomic",
    "AppendStructuredBuffer",
    "IArray",
    "ConsumeStructuredBuffer",
    "IRWArray",
    "RasterizerOrderedStructuredBuffer",
};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static void mark(Names *names, const char *text, Keyword word) {
    NameText *name = (NameText *)(uintptr_t)name_from(names, text);
    name->keyword = (uint16_t)word;
}

static void mark_shapes(Names *names, const char *scalar) {
    char text[32];
    size_t n = strlen(scalar);
    memcpy(text, scalar, n);
    for (char row = '1'; row <= '4'; row++) {
        text[n] = row, text[n + 1] = 0;
        mark(names, text, KEYWORD_type);
        for (char column = '1'; column <= '4'; column++) {
            text[n + 1] = 'x', text[n + 2] = column, text[n + 3] = 0;
            mark(names, text, KEYWORD_type);
        }
    }
}

void syntax_init_names(Names *names) {
    for (int i = 0; i < KEYWORD_COUNT; i++)
        if (words[i].text) mark(names, words[i].text, (Keyword)i);
    for (int i = 0; i < COUNT(scalars); i++) {
        mark(names, scalars[i], KEYWORD_type);
        mark_shapes(names, scalars[i]);
    }
    for (int i = 0; i < COUNT(plain_types); i++) mark(names, plain_types[i], KEYWORD_type);
    for (int i = 0; i < COUNT(generic_types); i++) mark(names, generic_types[i], KEYWORD_generic_type);
}

uint32_t keyword_modifiers(Keyword word) { return words[word].modifiers; }

Name syntax_statement_word(Names *names, Name name) {
    static const Keyword starts[] = {KEYWORD_return, KEYWORD_break, KEYWORD_continue, KEYWORD_while,
                                     KEYWORD_switch, KEYWORD_else,  KEYWORD_default};
    Name candidates[COUNT(starts)];
    for (int i = 0; i < COUNT(starts); i++) candidates[i] = name_from(names, words[starts[i]].text);
    return diag_nearest(name, candidates, COUNT(starts));
}
