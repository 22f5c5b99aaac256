/* What the engines share: error texts of their libraries turned into codes, and counters. */
#include <errno.h>
#include <string.h>

#include "storage/kv/kv_internal.h"

int drps_kv_foreign_error(const char *engine, const char *path, const char *doing, const char *text,
                          struct drps_err *err)
{
    /* The first match counts: "no space" arrives as "IO error: ...: No space left on device". */
    static const struct {
        const char *part;
        int code;
        const char *advice;
    } map[] = {
        {"No space left on device", -ENOSPC,
         "; free disk space or choose a folder on a larger disk"},
        {"Disk quota exceeded", -EDQUOT, "; free disk space or choose another folder"},
        {"Corruption", DRPS_E_CORRUPT, "; the database must be rebuilt"},
        {"Permission denied", -EACCES, ""},
        {"Read-only file system", -EROFS, ""},
        {"Too many open files", -EMFILE, "; raise the limit (ulimit -n)"},
        {"error_if_exists", -EEXIST, "; choose a new folder"},
        {"does not exist", -ENOENT, ""},
        {"No such file or directory", -ENOENT, ""},
        {"/LOCK: ", -EBUSY, "; another process or handle has it open"},
        {"NotFound", DRPS_E_NOT_FOUND, ""},
        {"IO error", -EIO, ""},
        {"", DRPS_E_BACKEND, ""},
    };
    size_t i = 0;
    while (!strstr(text, map[i].part))
        i++; /* "" is in every text */
    return drps_err_set(err, map[i].code, "%s database %s: %s: %s%s", engine, path, doing, text,
                        map[i].advice);
}

void drps_kv_database_memory(const struct drps_kv_options *options, uint64_t *least_out,
                             uint64_t *most_out)
{
    (void)options;
    *least_out = 24 << 20;
    *most_out = 192 << 20;
}

int drps_kv_missing(const char *path, uint32_t key, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_NOT_FOUND, "database %s has no block %u", path, key);
}

int drps_kv_wrong_size(const char *path, uint32_t key, size_t found, size_t expected,
                       struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT, "database %s: block %u has %zu bytes, expected %zu",
                        path, key, found, expected);
}

static uint64_t sum(const size_t *v, size_t n)
{
    uint64_t s = 0;
    for (size_t i = 0; i < n; i++)
        s += v[i];
    return s;
}

static void count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

void drps_kv_count_get(struct drps_kv_counters *c, size_t n, const size_t *value_bytes)
{
    count(&c->gets, n);
    count(&c->get_bytes, sum(value_bytes, n));
    count(&c->get_calls, 1);
}

void drps_kv_count_put(struct drps_kv_counters *c, size_t n, const size_t *value_bytes)
{
    count(&c->puts, n);
    count(&c->put_bytes, sum(value_bytes, n));
    count(&c->put_calls, 1);
}

void drps_kv_counters_read(const struct drps_kv_counters *c, struct drps_kv_stats *out)
{
    *out = (struct drps_kv_stats){0};
    out->gets = atomic_load_explicit(&c->gets, memory_order_relaxed);
    out->puts = atomic_load_explicit(&c->puts, memory_order_relaxed);
    out->get_bytes = atomic_load_explicit(&c->get_bytes, memory_order_relaxed);
    out->put_bytes = atomic_load_explicit(&c->put_bytes, memory_order_relaxed);
    out->get_calls = atomic_load_explicit(&c->get_calls, memory_order_relaxed);
    out->put_calls = atomic_load_explicit(&c->put_calls, memory_order_relaxed);
}
