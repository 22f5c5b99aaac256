/* The list of numbers. It only grows, so that who sets a number needs no lock: the lock is for who
 * adds, and for who walks the list. */
#include "base/monitor/monitor_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int drps_monitor_open(uint32_t rank, struct drps_monitor **out, struct drps_err *err)
{
    struct drps_monitor *m = calloc(1, sizeof(*m));
    *out = m;
    if (!m) return drps_err_set(err, -ENOMEM, "no memory for numbers to watch");
    (void)pthread_mutex_init(&m->lock, NULL);
    m->last = &m->first;
    m->rank = rank;
    return 0;
}

static void free_family(struct family *f)
{
    while (f->first) {
        struct drps_monitor_number *number = f->first;
        f->first = number->next;
        free(number->value);
        free(number);
    }
    free(f);
}

void drps_monitor_close(struct drps_monitor *m)
{
    if (!m) return;
    while (m->first) {
        struct family *f = m->first;
        m->first = f->next;
        free_family(f);
    }
    (void)pthread_mutex_destroy(&m->lock);
    free(m);
}

/* The family of a metric, new if there is none. Lock held. */
static struct family *family_of(struct drps_monitor *m, const struct drps_monitor_metric *metric)
{
    struct family *f = m->first;
    while (f && f->metric != metric)
        f = f->next;
    if (f) return f;
    f = calloc(1, sizeof(*f));
    if (!f) return NULL;
    f->metric = metric;
    f->last = &f->first;
    *m->last = f;
    m->last = &f->next;
    return f;
}

static struct drps_monitor_number *new_number(const char *value, size_t buckets)
{
    struct drps_monitor_number *number =
        calloc(1, sizeof(*number) + buckets * sizeof(number->counts[0]));
    if (!number || !value) return number;
    number->value = strdup(value);
    if (number->value) return number;
    free(number);
    return NULL;
}

static struct drps_monitor_number *add(struct drps_monitor *m,
                                       const struct drps_monitor_metric *metric, const char *value,
                                       const double *bounds, size_t buckets)
{
    struct drps_monitor_number *number = new_number(value, buckets);
    (void)pthread_mutex_lock(&m->lock);
    struct family *f = number ? family_of(m, metric) : NULL;
    if (f) {
        number->bounds = bounds;
        number->buckets = buckets;
        number->now = metric->type == DRPS_MONITOR_GAUGE ? NAN : 0;
        *f->last = number;
        f->last = &number->next;
    }
    (void)pthread_mutex_unlock(&m->lock);
    if (f) return number;
    if (number) free(number->value);
    free(number);
    m->failed = 1;
    return NULL;
}

struct drps_monitor_number *drps_monitor_add(struct drps_monitor *m,
                                             const struct drps_monitor_metric *metric,
                                             const char *value)
{
    return add(m, metric, value, NULL, 0);
}

struct drps_monitor_number *drps_monitor_add_histogram(struct drps_monitor *m,
                                                       const struct drps_monitor_metric *metric,
                                                       const char *value, const double *bounds,
                                                       size_t n)
{
    return add(m, metric, value, bounds, n + 1);
}

int drps_monitor_check(const struct drps_monitor *m, struct drps_err *err)
{
    return m->failed ? drps_err_set(err, -ENOMEM, "no memory for numbers to watch") : 0;
}

/* Relaxed: each number is read on its own, and says nothing of another one. */
void drps_monitor_set(struct drps_monitor_number *number, double value)
{
    if (number) atomic_store_explicit(&number->now, value, memory_order_relaxed);
}

void drps_monitor_set_histogram(struct drps_monitor_number *number, const uint64_t *counts,
                                double sum)
{
    if (!number) return;
    for (size_t i = 0; i < number->buckets; i++)
        atomic_store_explicit(&number->counts[i], counts[i], memory_order_relaxed);
    atomic_store_explicit(&number->now, sum, memory_order_relaxed);
}
