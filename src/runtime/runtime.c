/* The runtime of a session: configuration, the list of its threads, the first error. */
#include "runtime/thread.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KIB = 1024, MIB = 1024 * 1024, MAX_WORKERS = 1024 };

static uint64_t machine_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : (uint64_t)1 << 32;
}

/* Enough for ten million calls; a recursion without end must not take the machine with it. */
static size_t default_stack(void) {
    uint64_t memory = machine_memory(), plenty = (uint64_t)1 << 30,
             least = memory / 4 < plenty ? memory / 4 : plenty;
    return (size_t)(memory / 16 > least ? memory / 16 : least);
}

static int online_processors(void) {
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > MAX_WORKERS ? MAX_WORKERS : (int)count;
}

static void runtime_set_workers(Runtime *runtime, int workers);

Runtime *runtime_new(const RuntimeConfig *config) {
    Runtime *runtime = calloc(1, sizeof *runtime);
    if (!runtime) return NULL;
    if (pthread_key_create(&runtime->key, thread_destroy) != 0) {
        free(runtime);
        return NULL;
    }
    if (config) runtime->config = *config;
    RuntimeConfig *own = &runtime->config;
    runtime->stop = own->stop ? own->stop : &runtime->own_stop;
    if (own->tape_limit == 0) own->tape_limit = machine_memory() / 4 * 3;
    if (own->fiber_stack == 0) own->fiber_stack = MIB;
    if (own->fiber_stack < 64 * KIB) own->fiber_stack = 64 * KIB;
    if (own->worker_stack == 0) own->worker_stack = (size_t)64 * MIB;
    if (own->deep_stack == 0) own->deep_stack = default_stack();
    if (own->deep_stack < MIB) own->deep_stack = MIB;
    runtime_set_workers(runtime, own->workers);
    runtime->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    pthread_mutex_init(&runtime->lock, NULL);
    pthread_mutex_init(&runtime->output, NULL);
    pthread_mutex_init(&runtime->turn, NULL);
    pool_init(&runtime->pool);
    return runtime;
}

void runtime_free(Runtime *runtime) {
    if (!runtime) return;
    pool_free(&runtime->pool); /* its threads end, and with them their RtThreads */
    pthread_key_delete(runtime->key);
    while (runtime->threads) thread_destroy(runtime->threads);
    made_free(&runtime->made, 0);
    pthread_mutex_destroy(&runtime->lock);
    pthread_mutex_destroy(&runtime->output);
    pthread_mutex_destroy(&runtime->turn);
    if (runtime->plain) freelocale(runtime->plain);
    free(runtime->error);
    free(runtime->stray);
    free(runtime);
}

int runtime_workers(const Runtime *runtime) { return atomic_load(&((Runtime *)(uintptr_t)runtime)->workers); }

/* takes effect with the next dispatch */
static void runtime_set_workers(Runtime *runtime, int workers) {
    if (workers <= 0) workers = online_processors();
    atomic_store(&runtime->workers, workers > MAX_WORKERS ? MAX_WORKERS : workers);
}

void runtime_stop(Runtime *runtime, bool stop) { atomic_store(runtime->stop, stop); }

void runtime_mute(Runtime *runtime, bool mute) { atomic_store(&runtime->mute, mute); }

uint64_t runtime_tape_bytes(const Runtime *runtime) {
    return atomic_load(&((Runtime *)(uintptr_t)runtime)->tape_bytes);
}

static char *copy_text(const char *text, size_t length) {
    char *copy = malloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

void runtime_set_error(Runtime *runtime, bool answers, const char *text, size_t length) {
    pthread_mutex_lock(&runtime->lock);
    char **place = answers ? &runtime->error : &runtime->stray;
    char *copy = *place ? NULL : copy_text(text, length);
    if (copy && runtime->config.failed) {
        runtime->config.failed(runtime->config.user, copy);
        free(copy);
    } else if (copy) {
        *place = copy;
    }
    pthread_mutex_unlock(&runtime->lock);
}

void rt_outside(const RtContext *context, RtSite *site) {
    Runtime *runtime = context->owner ? context->owner->runtime : NULL; /* constants have none */
    if (!runtime || atomic_fetch_add(&site->count, 1) > 0) return;
    pthread_mutex_lock(&runtime->lock);
    site->next = runtime->outside;
    runtime->outside = site;
    pthread_mutex_unlock(&runtime->lock);
}

RtSite *runtime_take_outside(Runtime *runtime) {
    pthread_mutex_lock(&runtime->lock);
    RtSite *sites = runtime->outside;
    runtime->outside = NULL;
    pthread_mutex_unlock(&runtime->lock);
    return sites;
}

static char *take(Runtime *runtime, char **place) {
    pthread_mutex_lock(&runtime->lock);
    char *error = *place;
    *place = NULL;
    pthread_mutex_unlock(&runtime->lock);
    return error;
}

char *runtime_take_answer(Runtime *runtime) { return take(runtime, &runtime->error); }
char *runtime_take_stray(Runtime *runtime) { return take(runtime, &runtime->stray); }

char *runtime_take_error(Runtime *runtime) {
    char *error = runtime_take_answer(runtime), *stray = runtime_take_stray(runtime);
    if (!error) return stray;
    free(stray);
    return error;
}
