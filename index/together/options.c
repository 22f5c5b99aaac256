/* Which plans several machines can make together, and that all are started with the same options
 * (drps_together.h). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_checksum.h"
#include "index/drps_index.h"
#include "index/plan/drps_algorithm.h"
#include "index/together/begin.h"

static int is(const char *given, const char *name)
{
    return given && strcmp(given, name) == 0;
}

/* Returns what it is that only one machine can make, or NULL. */
static const char *of_one_machine(const struct drps_index_options *o)
{
    const struct drps_algorithm *a = drps_algorithm_find(o->algo);
    if (o->from_plan || o->base) return "a plan that begins with another plan";
    if (is(o->order, "grid")) return "the order grid";
    if (is(o->order, "micro")) return "the order micro";
    if (drps_algorithm_draws(a)) return "a plan of implicit feedback";
    if (drps_algorithm_has_sample_rows(a)) return "a plan whose samples have rows";
    if (o->servers || o->separate) return "a plan with servers of their own";
    if (o->hand_on) return "a plan that hands rows on";
    if (o->balance > 0) return "balanced rounds";
    if (o->machine_weights_n) return "machines of unequal weights";
    if (o->residual_slots) return "a plan with residual slots";
    if (o->samples && !is(o->samples, "kept") && !is(o->samples, "dealt"))
        return "a plan with placed samples";
    if (o->dppa.given) return "a plan with settings of dppa";
    if (o->partition && !is(o->partition, "auto") && !is(o->partition, "range"))
        return "a partition other than auto and range";
    if (o->blocks.by && !is(o->blocks.by, "pattern") && !is(o->blocks.by, "none"))
        return "blocks other than pattern and none";
    return NULL;
}

int drps_together_check(struct drps_index_options *o, struct drps_err *err)
{
    const char *what = of_one_machine(o);
    if (what)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: several machines cannot make that together; have one machine read "
                            "all data and make it for %" PRIu32 " workers",
                            what, o->ranks->count);
    if (o->workers && o->workers != o->ranks->count)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%" PRIu32 " workers and %" PRIu32
                            " machines: each machine is a worker, so leave their number out",
                            o->workers, o->ranks->count);
    o->workers = o->ranks->count;
    if (!o->partition) o->partition = "auto";
    if (!o->samples) o->samples = "kept";
    return 0;
}

static uint64_t hash_of(const char *text)
{
    return text ? drps_checksum(text, strlen(text)) : 0;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* What must be the same on all ranks. Memory, inputs and folders may differ. */
static const char *const option_names[] = {
    "whether files are the same on all",
    "algorithm",
    "loss",
    "task",
    "number of outputs",
    "number of factors",
    "choice of normalising",
    "choice of an intercept",
    "choice of dense batches",
    "class weights",
    "partition",
    "samples",
    "batch size",
    "batch size",
    "order",
    "seed",
    "share of test samples",
    "block builder",
    "block size",
    "cost of a disk request",
    "speed of the disk",
    "format",
    "bad lines",
    "label column",
    "header",
    "scale of columns",
    "columns crossed",
    "kinds of columns",
    "separator",
    "weights of samples",
    "column of clicks",
    "column of impressions",
    "seed of hashes",
    "hashing of features",
    "choice of a forecast",
};
enum { OPTIONS = sizeof(option_names) / sizeof(option_names[0]) };

static void hash_options(const struct drps_index_options *o, uint64_t out[OPTIONS])
{
    const struct drps_blocks_options *b = &o->blocks;
    const struct drps_reader_options *r = &o->reader;
    const uint64_t hashes[OPTIONS] = {
        (uint64_t)o->shared,
        hash_of(o->algo),
        hash_of(o->loss),
        hash_of(o->task),
        o->outputs,
        o->factors,
        (uint64_t)o->not_normalized,
        (uint64_t)o->no_bias,
        (uint64_t)o->dense,
        hash_of(o->class_weights),
        hash_of(o->partition),
        hash_of(o->samples),
        o->batch_size,
        bits_of(o->batch_percent),
        hash_of(o->order),
        o->seed,
        bits_of(o->test_fraction),
        hash_of(b->by),
        b->bytes,
        b->seek_ns,
        b->transfer_bps,
        hash_of(r->format),
        (uint64_t)r->skip_bad_lines,
        hash_of(r->csv_label),
        (uint64_t)r->csv_header,
        hash_of(r->csv_scale),
        hash_of(r->csv_cross),
        hash_of(r->csv_kinds),
        (uint64_t)r->csv_separator,
        hash_of(r->weight),
        hash_of(r->clicks),
        hash_of(r->impressions),
        r->hash_seed,
        (uint64_t)o->hashing.bits << 34 | (uint64_t)o->hashing.kind << 32 | o->hashing.bins,
        (uint64_t)o->no_forecast,
    };
    memcpy(out, hashes, sizeof(hashes));
}

int drps_together_check_options(const struct swap_ranks *ranks, const struct drps_index_options *o,
                                struct drps_err *err)
{
    uint64_t mine[OPTIONS], *all;
    hash_options(o, mine);
    int rc = drps_swap_gather(ranks, mine, OPTIONS, &all, err);
    for (uint32_t r = 1; r < ranks->count && rc == 0; r++)
        for (size_t i = 0; i < OPTIONS && rc == 0; i++)
            if (all[r * OPTIONS + i] != all[i])
                rc = drps_err_set(err, DRPS_E_CONFIG,
                                  "rank %" PRIu32
                                  " was started with other options than rank 0 (%s): all need the "
                                  "same, but for files, folders and memory",
                                  r, option_names[i]);
    free(all);
    return rc;
}
