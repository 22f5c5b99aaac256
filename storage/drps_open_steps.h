/*
 * The steps of a store that are open: they open in order and close in any. All stores use it;
 * private to storage/.
 */
#ifndef DRPS_STORAGE_OPEN_STEPS_H
#define DRPS_STORAGE_OPEN_STEPS_H

#include <errno.h>
#include <stdint.h>

#include "storage/drps_store.h"

struct drps_open_steps {
    unsigned span;           /* steps from the lowest open one on that may be open */
    _Atomic uint64_t opened; /* how many steps have opened, ever; statistics read it meanwhile */
    uint64_t lowest;         /* the first step that is not closed */
    uint64_t open;           /* bit s % 64: step s is open */
    int scans_open;          /* as in a store's config */
};

static inline uint64_t drps_open_steps_bit(uint64_t step)
{
    return UINT64_C(1) << step % DRPS_STORE_OPEN_MOST;
}

/* open_steps as in a store's config. -EINVAL: too many. */
DRPS_MUST_CHECK
static inline int drps_open_steps_init(struct drps_open_steps *o, unsigned open_steps,
                                       struct drps_err *err)
{
    *o = (struct drps_open_steps){.span = open_steps ? open_steps : 1};
    if (o->span <= DRPS_STORE_OPEN_MOST) return 0;
    return drps_err_set(err, -EINVAL, "%u steps open at a time: at most %d", open_steps,
                        DRPS_STORE_OPEN_MOST);
}

/* 0: this step may open now. -EINVAL: it is not the next one, or too many are open. */
DRPS_MUST_CHECK
static inline int drps_open_steps_check(const struct drps_open_steps *o, uint64_t step,
                                        struct drps_err *err)
{
    if (step != o->opened)
        return drps_err_set(err, -EINVAL, "step %llu opened, step %llu is next",
                            (unsigned long long)step, (unsigned long long)o->opened);
    if (step - o->lowest < o->span) return 0;
    return drps_err_set(err, -EINVAL, "step %llu opened, step %llu is open",
                        (unsigned long long)step, (unsigned long long)o->lowest);
}

static inline void drps_open_steps_add(struct drps_open_steps *o)
{
    const uint64_t step = o->opened;
    o->open |= drps_open_steps_bit(step);
    atomic_store_explicit(&o->opened, step + 1, memory_order_relaxed); /* one thread adds */
}

/* Note that a step has closed. -EINVAL: it is not open. */
DRPS_MUST_CHECK
static inline int drps_open_steps_close(struct drps_open_steps *o, uint64_t step,
                                        struct drps_err *err)
{
    if (step < o->lowest || step >= o->opened || !(o->open & drps_open_steps_bit(step)))
        return drps_err_set(err, -EINVAL, "step %llu closed, but it is not open",
                            (unsigned long long)step);
    o->open &= ~drps_open_steps_bit(step);
    while (o->lowest < o->opened && !(o->open & drps_open_steps_bit(o->lowest)))
        o->lowest++;
    return 0;
}

/* 0: no step is open, and all rows may be scanned or saved. -EINVAL: one is. */
DRPS_MUST_CHECK
static inline int drps_open_steps_none(const struct drps_open_steps *o, struct drps_err *err)
{
    if (!o->open) return 0;
    return drps_err_set(err, -EINVAL, "all rows are wanted while step %llu is open",
                        (unsigned long long)o->lowest);
}

/* 0: all rows may be scanned; those of open steps, too, where the store was opened so. -EINVAL. */
DRPS_MUST_CHECK
static inline int drps_open_steps_scan(const struct drps_open_steps *o, struct drps_err *err)
{
    return o->scans_open ? 0 : drps_open_steps_none(o, err);
}

#endif
