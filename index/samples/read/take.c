#include "index/samples/read/take.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "index/plan/drps_algorithm.h"
#include "index/samples/read/read.h"
#include "index/samples/read/replay.h"

#define REPLAY_ORDER_STREAM 0x7265706f72646572u /* "reporder": no stream of places is the same */

static int all_ones(const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (values[i] != 1.0f) return 0;
    return 1;
}

/* The dictionary started over: ids of one generation lie between two marks of both spools. */
static int mark_generation(struct read_samples *p, struct drps_err *err)
{
    int rc = drps_spool_mark(p->train, err);
    return rc < 0 ? rc : drps_spool_mark(p->test, err);
}

/* Keys of features and of samples are told apart by their size. */
static int check_keys(const struct taker *t, const struct drps_samples *s, size_t i,
                      struct drps_err *err)
{
    for (size_t j = s->starts[i]; j < s->starts[i + 1]; j++)
        if (s->keys[j] >= DRPS_SAMPLE_KEYS)
            return drps_err_set(err, DRPS_E_FORMAT,
                                "sample %llu has the feature id %llu: the algorithm %s takes ids "
                                "below 2^63",
                                (unsigned long long)t->number + 1, (unsigned long long)s->keys[j],
                                t->options->algo);
    return 0;
}

/* Sample i of `s`, with an entry of value 0 for its own row in front, into t->own. */
static int add_own_row(struct taker *t, const struct drps_samples *s, size_t i,
                       struct drps_err *err)
{
    struct drps_samples *own = &t->own;
    const size_t first = s->starts[i], n = s->starts[i + 1] - first;
    if (drps_array_reserve(&own->labels, &own->label_cap, 1, sizeof(*own->labels)) ||
        (s->weights &&
         drps_array_reserve(&own->weights, &own->weight_cap, 1, sizeof(*own->weights))) ||
        drps_array_reserve(&own->starts, &own->start_cap, 2, sizeof(*own->starts)) ||
        drps_array_reserve(&own->keys, &own->key_cap, n + 1, sizeof(*own->keys)) ||
        drps_array_reserve(&own->values, &own->value_cap, n + 1, sizeof(*own->values)))
        return drps_err_set(err, -ENOMEM, "no memory for a sample with %zu features", n);
    own->n = 1;
    own->labels[0] = s->labels[i];
    if (s->weights) own->weights[0] = s->weights[i];
    own->starts[0] = 0;
    own->starts[1] = n + 1;
    own->keys[0] = drps_algorithm_sample_key(t->number + 1);
    own->values[0] = 0;
    if (n) memcpy(own->keys + 1, s->keys + first, n * sizeof(*own->keys));
    if (n) memcpy(own->values + 1, s->values + first, n * sizeof(*own->values));
    return 0;
}

/* Fields are numbered up to the largest that a training sample has. */
static void count_fields(struct read_samples *p, const uint16_t *fields, size_t n)
{
    for (size_t j = 0; fields && j < n; j++)
        if (fields[j] >= p->field_count) p->field_count = fields[j] + 1u;
}

/* A sample's label and size are counted; of classes labels are their numbers. */
static void count_sample(struct read_samples *p, int test, const struct spool_sample *sample)
{
    if (!p->classes)
        drps_label_set_add(test ? &p->test_labels : &p->labels, sample->label,
                           (double)sample->weight);
    else if (!test)
        drps_exact_add(&p->in_training[(size_t)sample->label], (double)sample->weight);
    *(test ? &p->test_samples : &p->samples) += 1;
    *(test ? &p->test_nnz : &p->nnz) += sample->n;
}

/* Add sample i of `s`, which is at this place. */
static int add_sample(struct taker *t, const struct drps_samples *s, size_t i, uint64_t place,
                      struct drps_err *err)
{
    struct read_samples *p = t->out;
    size_t first = s->starts[i];
    size_t n = s->starts[i + 1] - first;
    const int test = drps_places_is_test(&t->places, place);
    struct spool_sample sample = {.label = s->labels[i],
                                  .weight = s->weights ? s->weights[i] : 1,
                                  .owner = t->owner,
                                  .n = (uint32_t)n,
                                  .fields = s->fields ? s->fields + first : NULL};
    uint32_t time = DICT_TEST;

    t->number++;
    if (n >= SPOOL_ENTRIES_MOST)
        return drps_err_set(err, DRPS_E_CONFIG, "a sample has more than 2^27 features");
    if (drps_array_reserve(&t->ids, &t->ids_cap, n, sizeof(*t->ids)))
        return drps_err_set(err, -ENOMEM, "no memory for a sample with %zu features", n);
    sample.order = drps_places_order(&t->places, place);
    if (!test) time = drps_places_time(&t->places, place, sample.order);
    int rc = drps_dict_add(p->dict, s, first, first + n, time, t->ids, err);
    if (rc > 0) rc = mark_generation(p, err);
    if (rc < 0) return rc;
    sample.ids = t->ids;
    if (!test) count_fields(p, sample.fields, n);
    if (!test && t->places.has_sequences) p->sequences += sample.fields[0] == DRPS_SEQUENCE_BEGINS;
    if (!s->all_ones && !all_ones(s->values + first, n)) sample.values = s->values + first;
    count_sample(p, test, &sample);
    if (s->numbers_each)
        rc = sample_numbers_pack(&t->numbers, s->numbers, s->numbers_each, &sample, err);
    if (rc < 0) return rc;
    return drps_spool_add(test ? p->test : p->train, &sample, err);
}

/* 1: the rating is a choice of the user's, or the algorithm has no choices. */
static int is_choice(const struct taker *t, float rating)
{
    const struct drps_implicit_options *o = &t->options->implicit;
    if (!drps_algorithm_draws(t->options->algorithm)) return 1;
    if (t->options->algorithm->algo == DRPS_ALGO_WMF && !(rating > 0)) return 0;
    return !o->has_least || (double)rating >= o->least;
}

/* Sample i of `s` with bins in place of its features, as the one sample of *out, whose arrays are
 * borrowed until the next one. */
static int hash_sample(struct taker *t, const struct drps_samples *s, size_t i, size_t starts[2],
                       struct drps_samples *out, struct drps_err *err)
{
    const size_t first = s->starts[i];
    const struct drps_hasher_input in = {.keys = s->keys + first,
                                         .values = s->values + first,
                                         .fields = s->fields ? s->fields + first : NULL,
                                         .n = s->starts[i + 1] - first};
    struct drps_hashed hashed;
    int rc = drps_hasher_run(t->hasher, &in, &hashed, err);
    if (rc < 0) return drps_err_context(err, "sample %llu", (unsigned long long)t->number + 1);
    starts[0] = 0;
    starts[1] = hashed.n;
    *out = (struct drps_samples){.n = 1,
                                 .labels = s->labels + i,
                                 .weights = s->weights ? s->weights + i : NULL,
                                 .starts = starts,
                                 .keys = hashed.keys,
                                 .values = hashed.values,
                                 .fields = hashed.fields,
                                 .all_ones = hashed.all_ones};
    return 0;
}

/* Sample i of `s`, which has numbers by place, as the one sample of *out with the one feature that
 * all such have. Its arrays are borrowed. */
static void view_numbers(struct taker *t, const struct drps_samples *s, size_t i, size_t starts[2],
                         struct drps_samples *out)
{
    t->no_key = 0;
    t->one = 1;
    starts[0] = 0;
    starts[1] = 1;
    *out = (struct drps_samples){.n = 1,
                                 .labels = s->labels + i,
                                 .weights = s->weights ? s->weights + i : NULL,
                                 .starts = starts,
                                 .keys = &t->no_key,
                                 .values = &t->one,
                                 .numbers_each = s->numbers_each,
                                 .numbers = s->numbers + i * (size_t)s->numbers_each,
                                 .all_ones = 1};
}

/* Take sample i of `s`, which is at this place of the input. */
static int take_read(struct taker *t, const struct drps_samples *s, size_t i, uint64_t place,
                     struct drps_err *err)
{
    if (!is_choice(t, s->labels[i])) {
        t->number++;
        t->out->below++;
        return 0;
    }
    int rc = t->sample_rows ? check_keys(t, s, i, err) : 0;
    if (rc < 0 || !t->sample_rows || drps_places_is_test(&t->places, place))
        return rc < 0 ? rc : add_sample(t, s, i, place, err);
    rc = add_own_row(t, s, i, err);
    return rc < 0 ? rc : add_sample(t, &t->own, 0, place, err);
}

static int take_sample(struct taker *t, const struct drps_samples *s, size_t i,
                       struct drps_err *err)
{
    struct drps_samples hashed, view;
    size_t starts[2];
    const uint64_t place = drps_places_of(&t->places, s, i);
    int rc = drps_places_check(&t->places, s, i, err);
    if (rc == 0 && s->numbers_each) {
        view_numbers(t, s, i, starts, &view);
        return take_read(t, &view, 0, place, err);
    }
    if (rc < 0 || !t->hasher) return rc < 0 ? rc : take_read(t, s, i, place, err);
    rc = hash_sample(t, s, i, starts, &hashed, err);
    return rc < 0 ? rc : take_read(t, &hashed, 0, place, err);
}

/* Keep where the third label was met, which is one too many for two classes. */
static void note_third_label(struct taker *t, const struct drps_samples *s, size_t i)
{
    struct read_samples *p = t->out;
    if (p->labels.n < 3 || p->third_line || t->options->ranks) return;
    p->third_input = s->input;
    p->third_line = s->lines[i];
}

int drps_take_all(struct taker *t, struct ahead *a, struct drps_err *err)
{
    struct drps_samples *piece;
    int rc;
    while ((rc = drps_ahead_next(a, &piece, err)) > 0) {
        t->owner = drps_read_owner_of(t->options, t->places.test_input, piece->input);
        for (size_t i = 0; rc >= 0 && i < piece->n; i++) {
            rc = take_sample(t, piece, i, err);
            note_third_label(t, piece, i);
        }
        drps_ahead_done(a);
        if (rc >= 0) rc = drps_index_report(t->progress, t->number, 0, err);
        if (rc < 0) return rc;
    }
    return rc;
}

static int add_replayed(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    struct taker *t = ctx;
    struct read_samples *p = t->out;
    s->order = t->places.shuffled ? drps_rng_at(t->options->seed ^ REPLAY_ORDER_STREAM, s->order)
                                  : p->samples;
    count_fields(p, s->fields, s->n);
    count_sample(p, 0, s);
    p->replayed++;
    return drps_spool_add(p->train, s, err);
}

int drps_take_replayed(struct taker *t, struct drps_err *err)
{
    const struct drps_index_options *o = t->options;
    if (!o->base_plan || !(o->replay > 0)) return 0;
    int rc = drps_replay(o->base_plan, o->replay, o->seed, add_replayed, t, err);
    return rc == 0 && t->out->replayed ? mark_generation(t->out, err) : rc;
}

int drps_taker_init(struct taker *t, const struct index_progress *progress,
                    struct read_samples *out, struct drps_err *err)
{
    const struct drps_index_options *o = progress->options;
    *t = (struct taker){.progress = progress,
                        .options = o,
                        .out = out,
                        .sample_rows = drps_algorithm_has_sample_rows(o->algorithm),
                        .places = {.seed = o->seed,
                                   .test_fraction = o->test_fraction,
                                   .shuffled = !o->order || strcmp(o->order, "given") != 0}};
    if (!o->hashing.bits) return 0;
    t->hasher = drps_hasher_new(&o->hashing, o->reader.hash_seed);
    return t->hasher ? 0 : drps_err_set(err, -ENOMEM, "no memory to hash features");
}

void drps_taker_destroy(struct taker *t)
{
    free(t->ids);
    sample_numbers_destroy(&t->numbers);
    drps_samples_free(&t->own);
    drps_hasher_free(t->hasher);
}
