/* What irtool, irfuzz and the like share: a session around a module, and passes by name. */
#ifndef IRTOOL_H
#define IRTOOL_H

#include "ir/ir.h"

typedef struct ToolSession {
    Arena arena;
    Names names;
    Types types;
    Sources sources;
    Diags diags;
    Module *module;
} ToolSession;

void tool_begin(ToolSession *session); /* `session` must not move afterwards */
bool tool_parse(ToolSession *session, const char *path, Str text);

/* Begins a session whose messages go to stderr, and parses a file, standard input for "-"; `text`, unless it
 * is NULL, gets what the file says. */
bool tool_open(ToolSession *session, const char *path, Str *text);

/* Runs a pass of opt by its name; false: there is none. `changed` may be NULL. */
bool tool_run_pass(Func *func, const char *name, bool *changed);
const char *tool_pass_name(int index); /* NULL: there are no more */

#endif
