/* Tensors that the program makes. Those of a call are freed when it ends, but for what it returns, which is
 * the caller's; those of a dispatch when the thread that has made them is done with it; those that constants
 * hold with the runtime.
 *
 * Their memory is of malloc, and begins with the counter, so that the caller knows what to free. */
#include "runtime/thread.h"
#include <stdlib.h>
#include <string.h>

struct Made {
    Made *next;
    char *memory; /* NULL: it is somebody else's */
    uint64_t serial;
};

void *rt_made_take(const RtContext *context, int64_t size) {
    static const char message[] = "out of memory for a tensor";
    RtThread *thread = context->owner;
    Made *made = malloc(sizeof *made);
    char *memory = made ? calloc(1, RT_BUFFER_HEADER + (size_t)size) : NULL;
    if (!memory) {
        free(made);
        thread_fail(thread, message, sizeof message - 1);
    }
    *made = (Made){thread->made, memory, ++thread->serial};
    thread->made = made;
    return memory + RT_BUFFER_HEADER;
}

static bool mentions(const char *object, int64_t size, const char *data) {
    for (int64_t i = 0; i + (int64_t)sizeof data <= size; i += (int64_t)sizeof data)
        if (memcmp(object + i, &data, sizeof data) == 0) return true;
    return false;
}

void rt_made_return(const RtContext *context, const void *object, int64_t size) {
    for (Made *made = context->owner->made; made; made = made->next)
        if (made->memory && mentions(object, size, made->memory + RT_BUFFER_HEADER)) made->memory = NULL;
}

void rt_made_constants(const RtContext *context) {
    RtThread *thread = context->owner;
    Runtime *runtime = thread->runtime;
    pthread_mutex_lock(&runtime->lock);
    while (thread->made && thread->made->serial > thread->guard->serial) {
        Made *made = thread->made;
        thread->made = made->next;
        made->next = runtime->made;
        runtime->made = made;
    }
    pthread_mutex_unlock(&runtime->lock);
}

void made_free(Made **list, uint64_t serial) {
    while (*list && (*list)->serial > serial) {
        Made *made = *list;
        *list = made->next;
        free(made->memory);
        free(made);
    }
}
