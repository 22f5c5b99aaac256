/* The phase: what was settled before, then samples of an earlier plan, then the inputs. */
#include <stdlib.h>
#include <string.h>

#include "index/samples/read/read.h"
#include "index/samples/read/shape.h"

/* 1: samples get their cells, or their groups, once their rows are placed. */
static int is_ordered_later(const struct drps_index_options *o)
{
    return drps_read_in_grid(o) || (o->order && strcmp(o->order, "micro") == 0);
}

/* Has data read as those of the plan that this one goes on from, or of rank 0. */
static int take_shape(const struct drps_io *io, const struct drps_index_options *o, const char *dir,
                      struct read_samples *p, struct drps_err *err)
{
    const struct drps_plan *base = o->base_plan;
    if (o->ranks && o->ranks->rank) {
        int classes = 0, rc = drps_shape_take(o->ranks, p, &classes, err);
        if (rc == 0 && !classes) drps_read_drop_classes(p);
        return rc == 0 ? drps_read_open_dict(io, o, dir, p, err) : rc;
    }
    if (!base) return 0;
    int rc = drps_read_take_columns(p, base, err);
    return rc == 0 ? drps_read_open_dict(io, o, dir, p, err) : rc;
}

static int open_spools(const struct drps_io *io, const struct drps_index_options *o, int shuffled,
                       const char *dir, struct read_samples *out, struct drps_err *err)
{
    const unsigned buckets = shuffled && !is_ordered_later(o) ? SPOOL_BUCKETS : 1;
    const uint64_t memory = o->memory_bytes;
    int rc =
        drps_spool_open(io, dir, "train", buckets, memory / SPOOL_TRAIN_SHARE, &out->train, err);
    if (rc < 0) return rc;
    return drps_spool_open(io, dir, "test", 1, memory / SPOOL_TEST_SHARE, &out->test, err);
}

/* Training inputs, then those for evaluation. */
static int read_lists(const struct drps_io *io, struct taker *t, const char *dir,
                      struct drps_err *err)
{
    const struct drps_index_options *o = t->options;
    t->places.inputs = o->first_input;
    int rc = drps_read_list(io, t, o->inputs, o->inputs_n, dir, err);
    t->places.inputs = o->first_test ? o->first_test : o->first_input + o->inputs_n;
    t->places.test_input = 1;
    if (rc == 0 && o->tests_n) rc = drps_read_list(io, t, o->tests, o->tests_n, dir, err);
    t->out->longest = t->places.longest;
    return rc;
}

static void warn_of_values(const struct taker *t)
{
    if (t->hasher && drps_hasher_took_values(t->hasher))
        drps_log(t->options->log, DRPS_LOG_WARN,
                 "one-permutation hashing is of sets: features have values other than 1, which are "
                 "not looked at; signed hashing keeps them");
}

int drps_read_samples(const struct drps_io *io, const struct index_progress *progress,
                      const char *dir, struct read_samples *out, struct drps_err *err)
{
    const struct drps_index_options *o = progress->options;
    struct taker t;
    int rc = drps_taker_init(&t, progress, out, err);
    if (rc == 0) rc = drps_read_open_classes(o, out, err);
    if (rc == 0) rc = take_shape(io, o, dir, out, err);
    if (rc == 0) rc = open_spools(io, o, t.places.shuffled, dir, out, err);
    if (rc == 0) rc = drps_take_replayed(&t, err);
    if (rc == 0) rc = read_lists(io, &t, dir, err);
    if (rc == 0) rc = drps_spool_finish(out->train, err);
    if (rc == 0) rc = drps_spool_finish(out->test, err);
    if (rc == 0) warn_of_values(&t);
    drps_taker_destroy(&t);
    return rc;
}

void drps_read_samples_free(struct read_samples *p)
{
    if (!p) return;
    drps_read_drop_classes(p);
    drps_dict_close(p->dict);
    drps_spool_close(p->train);
    drps_spool_close(p->test);
    for (size_t i = 0; p->fields && i < p->fields_n; i++)
        free(p->fields[i]);
    free(p->fields);
    memset(p, 0, sizeof(*p));
}
