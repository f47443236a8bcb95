/* Where lines come from. While text is made, a line that is a statement carries the position of its
 * instruction at its end, behind a character that occurs nowhere else. At last the mark becomes a comment,
 * #line, or, on a page that shows source and result side by side, a link. */
#include "emit/clike/clike.h"

enum { MARK = 1, COMMENT_COLUMN = 80 };

void clike_mark_line(Printer *p) {
    bool wanted = p->file->comments || p->file->lines || p->file->side_by_side;
    if (!wanted || !p->module->diags || p->out->len == 0) return;
    char last = p->out->at[p->out->len - 1];
    Loc loc = p->at ? p->at->loc : last == '{' ? p->head : 0;
    if (loc && (last == ';' || last == '{')) text_printf(p->out, "%c%u", MARK, (unsigned)loc);
    if (last == '{') p->head = 0;
}

void clike_mark_head(Printer *p, const Func *func) {
    const Func *source = func->derivation.of ? func->derivation.of : func;
    p->head = p->file->comments && !p->file->lines ? 0 : source->loc;
}

/* One line of the result. */
typedef struct Line {
    Str text;
    Position from; /* line 0: from nowhere in particular */
    Loc loc;
} Line;

static Line read_line(Printer *p, const char **at) {
    const char *start = *at, *end = start + strcspn(start, "\n"),
               *mark = memchr(start, MARK, (size_t)(end - start));
    Line line = {.text = {start, (int)((mark ? mark : end) - start)}};
    for (const char *digit = mark ? mark + 1 : end; digit < end; digit++)
        line.loc = line.loc * 10 + (Loc)(*digit - '0');
    if (line.loc) line.from = source_position(p->module->diags->sources, line.loc);
    *at = *end ? end + 1 : end;
    return line;
}

/* The file whose lines need no name. */
static Name main_path(Printer *p) {
    for (int i = 0; i < p->reached.funcs.count; i++) {
        const Func *func = p->reached.funcs.at[i]->func;
        const Func *source = func->derivation.of ? func->derivation.of : func;
        if ((func->flags & FUNC_EXPORT) && source->loc)
            return source_position(p->module->diags->sources, source->loc).path;
    }
    return NULL;
}

static void add_comment(const Line *line, Name own, Text *out) {
    if (!line->from.path) return;
    text_printf(out, "%*s // ", line->text.len < COMMENT_COLUMN ? COMMENT_COLUMN - line->text.len : 0, "");
    if (line->from.path != own) text_printf(out, "%s:", line->from.path->text);
    text_printf(out, line->from.path == own ? "line %d" : "%d", line->from.line);
}

/* Before a line that is not from where compilers take it to be, which count on from what they were told last.
 * What ends a block ends what is before it. */
static void add_directive(Printer *p, const Line *line, Position *last, int *next, Text *out) {
    const char *start = line->text.at + strspn(line->text.at, " ");
    Position from = line->from.path || *start != '}' ? line->from : *last;
    if (from.path && (from.path != last->path || from.line != *next)) {
        text_printf(out, "#line %d", from.line);
        if (from.path != last->path) text_printf(out, " %s", clike_string(p, str_of(from.path->text)));
        text_char(out, '\n');
        *next = from.line;
    }
    if (from.path) *last = from;
    ++*next;
}

static void add_origins(Printer *p, const Text *code, Text *out) {
    Name own = main_path(p);
    Position last = {0};
    int next = 0;
    for (const char *at = code->at; *at;) {
        Line line = read_line(p, &at);
        if (p->file->lines) add_directive(p, &line, &last, &next, out);
        text_add(out, line.text);
        if (p->file->comments) add_comment(&line, own, out);
        text_char(out, '\n');
    }
}

/* ---- side by side */

static const char page_head[] =
    "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>Source and derivative</title>\n<style>\n"
    ":root { color-scheme: light dark; --back: #fff; --text: #111; --other: #777; --rule: #bbb; --on: "
    "#ffe9a8; "
    "}\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  :root { --back: #16181d; --text: #e4e4e4; --other: #8b8f98; --rule: #444; --on: #55460f; }\n}\n"
    "body { margin: 0; display: flex; height: 100vh; font: 13px/1.45 ui-monospace, monospace; }\n"
    "body { background: var(--back); color: var(--text); }\n"
    "section { flex: 1; min-width: 0; overflow: auto; padding: 0 1em 50vh; }\n"
    "section + section { border-left: 1px solid var(--rule); }\n"
    "h2 { font-size: 13px; position: sticky; top: 0; left: -1em; margin: 0 -1em; padding: .6em 1em; }\n"
    "h2 { background: var(--back); border-bottom: 1px solid var(--rule); }\n"
    "ol { margin: .5em 0; padding-left: 4em; width: max-content; min-width: calc(100% - 4em); }\n"
    "li { white-space: pre; color: var(--other); scroll-margin: 6em; } li::marker { color: var(--other); }\n"
    "li[data-of] { color: var(--text); cursor: pointer; } li.on { background: var(--on); }\n"
    "@media (max-width: 50em) {\n"
    "  body { flex-direction: column; } section { min-height: 0; padding-bottom: 1em; }\n"
    "  section + section { border-left: 0; border-top: 3px solid var(--rule); flex: 2; }\n}\n"
    "</style>\n<section id=\"source\">\n";
static const char page_tail[] =
    "</section>\n<script>\n"
    "const lines = [...document.querySelectorAll('li[data-of]')];\n"
    "const show = (line, scroll) => {\n"
    "  for (const other of lines) other.classList.toggle('on', other.dataset.of === line.dataset.of);\n"
    "  const far = lines.find(other => other.dataset.of === line.dataset.of &&\n"
    "                                  other.closest('section') !== line.closest('section'));\n"
    "  if (scroll && far) far.scrollIntoView({block: 'center'});\n"
    "};\n"
    "for (const line of lines) {\n"
    "  line.addEventListener('mouseover', () => show(line, false));\n"
    "  line.addEventListener('click', () => show(line, true));\n"
    "}\n"
    "const first = document.querySelector('#result li[data-of]');\n"
    "if (first) first.scrollIntoView({block: 'start'});\n</script>\n</html>\n";

static void add_escaped(Text *out, Str text) {
    for (int i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '<') text_add(out, STR("&lt;"));
        else if (c == '&') text_add(out, STR("&amp;"));
        else text_char(out, c);
    }
}

/* Lines are linked by the file's number and their own. */
static void add_item(Text *out, Str text, int file, int line) {
    if (file >= 0 && line) text_printf(out, "<li data-of=\"%d:%d\">", file, line);
    else text_add(out, STR("<li>"));
    add_escaped(out, text);
    text_add(out, STR("</li>\n"));
}

typedef struct Files {
    VEC(SourceFile *) at;
} Files;

/* The program's own files; the library's are not shown. -1: one of those. */
static int file_number(Printer *p, Files *files, Loc loc) {
    SourceFile *file = source_of(p->module->diags->sources, loc);
    const Sources *own = p->module->diags->sources;
    for (int i = 0; i < files->at.count; i++)
        if (files->at.at[i] == file) return i;
    for (int i = 0; i < own->files.count; i++) {
        if (own->files.at[i] != file) continue;
        vec_push(&p->arena, &files->at, file);
        return files->at.count - 1;
    }
    return -1;
}

static bool is_linked(const Map *linked, int file, int line) {
    return map_has(linked, (uint64_t)file << 32 | (uint64_t)line);
}

static void add_source(Text *out, const SourceFile *file, int number, const Map *linked) {
    text_add(out, STR("<h2>"));
    add_escaped(out, str_of(file->path->text));
    text_add(out, STR("</h2>\n<ol>\n"));
    int line = 1;
    for (const char *at = file->text.at, *end = at + file->text.len; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        add_item(out, (Str){at, (int)(stop - at)}, number, is_linked(linked, number, line) ? line : 0);
        at = stop + 1;
    }
    text_add(out, STR("</ol>\n"));
}

static void add_page(Printer *p, const Text *code, Text *out) {
    Files files = {0};
    Map linked = {0};
    Text result = {.arena = &p->arena};
    for (int i = 0; i < p->reached.funcs.count; i++)
        if (p->reached.funcs.at[i]->func->loc) file_number(p, &files, p->reached.funcs.at[i]->func->loc);
    for (const char *at = code->at; *at;) {
        Line line = read_line(p, &at);
        int file = line.loc ? file_number(p, &files, line.loc) : -1;
        if (file >= 0) map_put(&p->arena, &linked, (uint64_t)file << 32 | (uint64_t)line.from.line, p);
        add_item(&result, line.text, file, line.from.line);
    }
    text_add(out, STR(page_head));
    for (int i = 0; i < files.at.count; i++) add_source(out, files.at.at[i], i, &linked);
    text_printf(out, "</section>\n<section id=\"result\">\n<h2>%s</h2>\n<ol>\n", p->file->target->name);
    text_add(out, text_str(&result));
    text_add(out, STR("</ol>\n"));
    text_add(out, STR(page_tail));
}

/* ---- the end */

void clike_resolve_marks(Printer *p, Text *code) {
    Text out = {.arena = &p->arena};
    if (p->file->side_by_side) add_page(p, code, &out);
    else if (p->file->comments || p->file->lines) add_origins(p, code, &out);
    else return;
    *code = out;
}
