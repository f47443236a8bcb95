/* Changes to text that a compiler gets far with. A token is replaced by another of the same kind from the
 * same text, two tokens of a kind are exchanged, a line is doubled, moved or taken away. Random bytes mostly
 * test the lexer; these leave most programs well formed, and many well typed. */
#include "target.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { MOST_TOKENS = 4096, MOST_TEXT = 1 << 16 };

typedef enum TokenKind { TOKEN_name, TOKEN_number, TOKEN_sign } TokenKind;

typedef struct Token {
    uint32_t at, size;
    TokenKind kind;
} Token;

typedef struct Mutation {
    uint8_t *data;
    size_t size, room;
    uint64_t state;
} Mutation;

static uint32_t draw(Mutation *m, size_t below) {
    m->state = m->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((m->state >> 33) % (below ? below : 1));
}

static bool is_word(uint8_t c) { return isalnum(c) || c == '_'; }

static int find_tokens(const Mutation *m, Token *tokens) {
    int count = 0;
    for (size_t i = 0; i < m->size && count < MOST_TOKENS;) {
        size_t start = i++;
        uint8_t c = m->data[start];
        if (isspace(c)) continue;
        bool word = is_word(c);
        while (word && i < m->size && is_word(m->data[i])) i++;
        TokenKind kind = isdigit(c) ? TOKEN_number : word ? TOKEN_name : TOKEN_sign;
        tokens[count++] = (Token){(uint32_t)start, (uint32_t)(i - start), kind};
    }
    return count;
}

/* Puts these bytes in place of others; false: there is no room. */
static bool replace(Mutation *m, size_t at, size_t old, const uint8_t *bytes, size_t size) {
    if (m->size - old + size > m->room) return false;
    memmove(m->data + at + size, m->data + at + old, m->size - at - old);
    memcpy(m->data + at, bytes, size);
    m->size = m->size - old + size;
    return true;
}

static void change_token(Mutation *m) {
    static Token tokens[MOST_TOKENS];
    uint8_t copy[256];
    int count = find_tokens(m, tokens);
    if (count < 2) return;
    Token to = tokens[draw(m, (size_t)count)], from = to;
    for (int tries = 0; tries < 64 && (from.at == to.at || from.kind != to.kind); tries++)
        from = tokens[draw(m, (size_t)count)];
    if (from.kind != to.kind || from.size > sizeof copy) return;
    memcpy(copy, m->data + from.at, from.size);
    replace(m, to.at, to.size, copy, from.size);
}

/* The line around a place, with its end. */
static Token line_at(const Mutation *m, size_t at) {
    size_t start = at, end = at;
    while (start > 0 && m->data[start - 1] != '\n') start--;
    while (end < m->size && m->data[end] != '\n') end++;
    if (end < m->size) end++;
    return (Token){(uint32_t)start, (uint32_t)(end - start), TOKEN_sign};
}

static void change_line(Mutation *m) {
    uint8_t copy[1024];
    Token line = line_at(m, draw(m, m->size)), other = line_at(m, draw(m, m->size));
    size_t size = line.size < sizeof copy ? line.size : sizeof copy;
    memcpy(copy, m->data + line.at, size);
    switch (draw(m, 3)) {
    case 0: replace(m, line.at, line.size, copy, 0); break;
    case 1: replace(m, other.at, 0, copy, size); break;
    default: replace(m, other.at, other.size, copy, size); break;
    }
}

size_t mutate_text(uint8_t *data, size_t size, size_t room, unsigned seed) {
    Mutation m = {data, size, room < MOST_TEXT ? room : MOST_TEXT, seed * 2654435761u + 1};
    if (size == 0 || draw(&m, 4) == 0) return LLVMFuzzerMutate(data, size, room);
    for (uint32_t changes = 1 + draw(&m, 4); changes > 0 && m.size > 0; changes--) {
        if (draw(&m, 3) > 0) change_token(&m);
        else change_line(&m);
    }
    return m.size;
}
