/* How many rows a builder that compares all pairs keeps (drps_prune.h). */
#include "index/blocks/builders/drps_prune.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_extsort.h"
#include "index/blocks/builders/kept.h"
#include "index/blocks/builders/merging.h"

/* Steps of counting every pair once, and of counting again what merges: about a minute each. */
#define MOST_COUNTING 5e9
#define MOST_MERGING 5e10

/*
 * Who says which rows to keep has the time. The steps of counting all pairs are the squares of the
 * kept rows of each batch, added up: those of batches that have equally many, which is the least
 * that they can be. Each row merges once, and its block is counted then: with all that its batches
 * touch, which is all accesses at most.
 */
static int takes_too_long(const struct counts *t, const struct block_options *o,
                          const struct greedy_size *z)
{
    const double batches = fmax(t->batches * o->sample, 1), accesses = (double)z->accesses;
    return !o->min_count && !o->keep_rows &&
           (accesses * accesses > MOST_COUNTING * batches ||
            (double)z->live * accesses > MOST_MERGING);
}

/* Memory for twice the pairs: ranks that count take half of it for theirs. */
static uint64_t bytes_of(struct greedy_size z)
{
    z.live *= 2;
    return drps_greedy_size_bytes(&z);
}

/* Keep one row after another, the most used first, while memory and time allow. */
static void keep(const struct counts *t, const uint32_t *sorted, const struct block_options *o,
                 struct prune_choice *out)
{
    struct greedy_size z = {.rows = t->blocks};
    int fits = 1;
    for (uint32_t n = 0; n < out->asked; n++) {
        const uint32_t uses = sorted[t->blocks - 1 - n];
        z.kept++;
        z.live += uses > 0;
        z.accesses += uses;
        const int in_memory = bytes_of(z) <= o->memory_bytes && z.accesses <= t->pair_accesses;
        if (fits && (!in_memory || takes_too_long(t, o, &z))) {
            fits = 0;
            out->for_time = in_memory;
        }
        out->kept += (uint32_t)fits;
    }
}

int drps_prune_choose(struct counts *t, const struct block_options *options,
                      struct prune_choice *out, struct drps_err *err)
{
    const uint32_t rows = t->blocks;
    uint32_t *uses = drps_array_new(rows, sizeof(*uses));
    uint32_t *aux = drps_array_new(rows, sizeof(*aux));

    *out = (struct prune_choice){0};
    int rc = uses && aux ? t->ops->counts(t, uses, err)
                         : drps_err_set(err, -ENOMEM, "no memory for the counts of %u rows", rows);
    if (rc == 0) {
        drps_sort_u32(uses, aux, rows);
        out->asked = drps_kept_rows(uses, rows, options);
        keep(t, uses, options, out);
    }
    free(uses);
    free(aux);
    if (rc < 0 || out->kept == out->asked || out->kept >= 2) return rc;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "%" PRIu32 " rows leave no memory to compare them with each other", rows);
}
