/* Makes a failing program smaller. */
#ifndef IRREDUCE_H
#define IRREDUCE_H

#include "irtool.h"

/* The smallest program found that still fails; the text is in the arena. */
Str tool_reduce(Arena *arena, Str text, bool (*fails)(void *user, Str text), void *user);

#endif
