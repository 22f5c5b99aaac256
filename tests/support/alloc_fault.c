#include "support/alloc_fault.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <jansson.h>

static atomic_long left; /* calls until the one that fails; 0 or less: none will */
static atomic_int kind_now, fired;
static atomic_size_t where;

extern const char __executable_start; /* of the linker */

static int strikes(enum alloc_fault kind, const void *caller)
{
    if (atomic_load(&kind_now) != (int)kind || atomic_load(&left) <= 0) return 0;
    if (atomic_fetch_sub(&left, 1) != 1) return 0;
    atomic_store(&where, caller ? (size_t)((const char *)caller - &__executable_start) : 0);
    atomic_store(&fired, 1);
    errno = ENOMEM;
    return 1;
}

#define STRIKES(kind) strikes(kind, __builtin_return_address(0))

/* What the linker calls in place of the functions, and the functions. */
void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);
char *__wrap_strndup(const char *text, size_t n);
int __wrap_asprintf(char **out, const char *form, ...) __attribute__((format(printf, 2, 3)));
void *__real_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *ctx);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *ctx);

json_t *__real_json_loadb(const char *text, size_t n, size_t flags, json_error_t *at);
json_t *__wrap_json_loadb(const char *text, size_t n, size_t flags, json_error_t *at);
size_t __real_json_dumpb(const json_t *j, char *text, size_t n, size_t flags);
size_t __wrap_json_dumpb(const json_t *j, char *text, size_t n, size_t flags);

void *__wrap_malloc(size_t bytes)
{
    return STRIKES(FAULT_MEMORY) ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return STRIKES(FAULT_MEMORY) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return STRIKES(FAULT_MEMORY) ? NULL : __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
    return STRIKES(FAULT_MEMORY) ? NULL : __real_aligned_alloc(align, bytes);
}

char *__wrap_strdup(const char *text)
{
    return STRIKES(FAULT_MEMORY) ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t n)
{
    return STRIKES(FAULT_MEMORY) ? NULL : __real_strndup(text, n);
}

int __wrap_asprintf(char **out, const char *form, ...)
{
    va_list values;
    if (STRIKES(FAULT_MEMORY)) {
        memset(out, 0xa5, sizeof(*out)); /* what it holds after a failure is not said */
        return -1;
    }
    va_start(values, form);
    const int n = vasprintf(out, form, values);
    va_end(values);
    return n;
}

void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
    return STRIKES(FAULT_MEMORY) ? MAP_FAILED : __real_mmap(at, bytes, prot, flags, fd, offset);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *ctx)
{
    return STRIKES(FAULT_THREAD) ? EAGAIN : __real_pthread_create(thread, attr, run, ctx);
}

/* Jansson builds values well without memory, but reading and writing of texts it does not: they
 * fail as a whole. */
static _Thread_local int whole;

static void *malloc_of_jansson(size_t bytes)
{
    return !whole && strikes(FAULT_MEMORY, NULL) ? NULL : __real_malloc(bytes);
}

json_t *__wrap_json_loadb(const char *text, size_t n, size_t flags, json_error_t *at)
{
    if (STRIKES(FAULT_MEMORY)) {
        *at = (json_error_t){.line = -1, .column = -1};
        return NULL;
    }
    whole = 1;
    json_t *j = __real_json_loadb(text, n, flags, at);
    whole = 0;
    return j;
}

size_t __wrap_json_dumpb(const json_t *j, char *text, size_t n, size_t flags)
{
    if (STRIKES(FAULT_MEMORY)) return 0;
    whole = 1;
    const size_t bytes = __real_json_dumpb(j, text, n, flags);
    whole = 0;
    return bytes;
}

void alloc_fault_arm(enum alloc_fault kind, long k)
{
    json_set_alloc_funcs(malloc_of_jansson, free);
    atomic_store(&fired, 0);
    atomic_store(&kind_now, (int)kind);
    atomic_store(&left, k);
}

int alloc_fault_disarm(void)
{
    atomic_store(&left, 0);
    return atomic_load(&fired);
}

size_t alloc_fault_where(void)
{
    return atomic_load(&where);
}
