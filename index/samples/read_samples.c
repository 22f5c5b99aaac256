/*
 * A reading thread parses pieces of text ahead; the calling thread looks their features up and
 * spools the samples. Two pieces are in flight: one being parsed, one being looked up.
 */
#include "index/samples/drps_read_samples.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "index/hashing/drps_hasher.h"
#include "index/layers/drps_layers.h"
#include "index/plan/drps_algorithm.h"
#include "index/reader/input/drps_input.h"
#include "index/samples/drps_replay.h"
#include "index/samples/numbers.h"
#include "index/samples/shape.h"
#include "index/watch/drps_index_watch.h"

enum { PIECES = 2, GIVEN_TIME_SAMPLES = 8 /* in given order, of one time */ };

/* The place of a sample of a sequence: the sequence's number from this bit on, and how many samples
 * of it came before. */
enum { SEQUENCE_BIT = 12 };
static_assert(DRPS_SEQUENCE_MOST <= 1 << SEQUENCE_BIT, "places in a sequence fit their bits");

/* The place of any other sample: its input from this bit on, whether it is the second of its line,
 * and the line. */
enum { INPUT_BIT = 40, SECOND_BIT = 39 };

/* Streams of random numbers that must not be the same. */
#define ORDER_STREAM 0x6f72646572u              /* "order" */
#define REPLAY_ORDER_STREAM 0x7265706f72646572u /* "reporder" */
#define SPLIT_STREAM 0x73706c6974u              /* "split" */

/* ---- Reading ahead ---- */

struct ahead {
    struct drps_reader *reader;
    struct drps_index_watch *watch; /* borrowed; may be NULL */
    struct swap_ranks *ranks;       /* borrowed; NULL: this machine alone */
    struct drps_samples pieces[PIECES];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t filled, taken;
    int rc; /* of the reader: 1 going on, 0 at the end, < 0 failed */
    int stopping;
    struct drps_err err;
};

static void *read_pieces(void *arg)
{
    struct ahead *a = arg;
    int rc = 1;
    while (rc > 0) {
        pthread_mutex_lock(&a->lock);
        while (a->filled - a->taken == PIECES && !a->stopping)
            pthread_cond_wait(&a->changed, &a->lock);
        int stop = a->stopping;
        struct drps_samples *piece = &a->pieces[a->filled % PIECES];
        pthread_mutex_unlock(&a->lock);
        if (stop) break;
        rc = drps_reader_next(a->reader, piece, &a->err);
        drps_index_watch_read(a->watch, drps_reader_file_bytes(a->reader),
                              drps_reader_lines(a->reader));
        if (a->ranks)
            atomic_store_explicit(&a->ranks->read_bytes, drps_reader_file_bytes(a->reader),
                                  memory_order_relaxed);
        pthread_mutex_lock(&a->lock);
        if (rc > 0) a->filled++;
        a->rc = rc;
        pthread_cond_broadcast(&a->changed);
        pthread_mutex_unlock(&a->lock);
    }
    return NULL;
}

static int ahead_start(struct ahead *a, struct drps_err *err)
{
    a->rc = 1;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    int rc = pthread_create(&a->thread, NULL, read_pieces, a);
    if (rc) return drps_err_set(err, -rc, "cannot start the parsing thread: %s", strerror(rc));
    return 0;
}

/* The next piece, borrowed until ahead_done(). 1, 0 at the end. */
static int ahead_next(struct ahead *a, struct drps_samples **piece_out, struct drps_err *err)
{
    pthread_mutex_lock(&a->lock);
    while (a->filled == a->taken && a->rc > 0)
        pthread_cond_wait(&a->changed, &a->lock);
    int more = a->filled != a->taken;
    int rc = more ? 1 : a->rc;
    *piece_out = &a->pieces[a->taken % PIECES];
    pthread_mutex_unlock(&a->lock);
    return rc < 0 ? drps_err_set(err, rc, "%s", a->err.text) : rc;
}

static void ahead_done(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    a->taken++;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

static void ahead_stop(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    a->stopping = 1;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->changed);
}

/* ---- Taking samples ---- */

struct taker {
    const struct index_progress *progress;
    const struct drps_index_options *options; /* its own */
    struct read_samples *out;
    uint64_t number; /* of the next sample of all inputs */
    uint64_t inputs; /* before those being read */
    int shuffled;    /* by seed, whether in a grid or not; 0: given */
    uint32_t owner;  /* of the samples of the piece at hand */
    int test_input;  /* the input being read holds evaluation samples */
    uint32_t *ids;
    size_t ids_cap;
    int sample_rows;            /* training samples have a row of their own */
    struct drps_samples own;    /* one sample with its row's entry; sample_rows */
    struct drps_hasher *hasher; /* own; NULL: features are not hashed */
    uint64_t no_key;            /* the one feature of samples that have numbers by place, and */
    float one;                  /* its value */
    struct sample_numbers numbers;
    int has_sequences;
    uint64_t place; /* of the next sample in its sequence, if that goes on */
};

int drps_samples_stay(const struct drps_index_options *o)
{
    return o->workers > 1 && o->samples && strcmp(o->samples, "kept") == 0;
}

int drps_tests_stay(const struct drps_index_options *o)
{
    return o->tests_n % o->workers == 0;
}

/* Returns where the label's weights are added up. */
static struct drps_exact *find_label(struct label_set *set, float label)
{
    size_t i = 0;
    while (i < set->n && i < 2 && set->values[i] != label)
        i++;
    if (i == set->n) set->values[set->n++] = label;
    return &set->weights[i];
}

void drps_label_set_add(struct label_set *set, float label, double weight)
{
    drps_exact_add(find_label(set, label), weight);
}

void drps_label_set_merge(struct label_set *set, const struct label_set *from)
{
    for (size_t i = 0; i < from->n; i++)
        drps_exact_merge(find_label(set, from->values[i]), &from->weights[i]);
}

/* 1: the first line of each input is a header, which is not counted. */
static uint64_t has_header(const struct read_samples *p)
{
    return strcmp(p->format, "csv") == 0 && !p->headless;
}

/* Returns the place of a sample of a sequence, and expects the next one behind it. */
static uint64_t next_place(struct taker *t, uint16_t mark)
{
    const uint64_t step = UINT64_C(1) << SEQUENCE_BIT;
    if (mark == DRPS_SEQUENCE_BEGINS) t->place = (t->place / step + 1) * step;
    const uint64_t length = t->place % step + 1;
    if (length > t->out->longest) t->out->longest = (uint32_t)length;
    return t->place++;
}

/* What is drawn for a sample follows from its input and its line, so that whoever reads the line
 * draws the same. A line of clicks may have two samples. */
static uint64_t place_of(struct taker *t, const struct drps_samples *s, size_t i)
{
    if (t->has_sequences) return next_place(t, s->fields[s->starts[i]]);
    const uint64_t line = s->lines[i] - 1 - has_header(t->out);
    const uint64_t second = i > 0 && s->lines[i] == s->lines[i - 1];
    return (t->inputs + s->input) << INPUT_BIT | second << SECOND_BIT | line;
}

static int check_place(const struct taker *t, const struct drps_samples *s, size_t i,
                       struct drps_err *err)
{
    if (t->has_sequences) return 0; /* 2^52 sequences cannot be read in a lifetime */
    if ((s->lines[i] - 1) >> SECOND_BIT == 0 && (t->inputs + s->input) >> (64 - INPUT_BIT) == 0)
        return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "line %llu of input %llu: there can be 2^39 lines (of docword, documents) "
                        "in an input, and 2^24 inputs",
                        (unsigned long long)s->lines[i],
                        (unsigned long long)(t->inputs + s->input) + 1);
}

static int is_test(const struct taker *t, uint64_t place)
{
    if (t->test_input) return 1;
    double share = t->options->test_fraction;
    const uint64_t drawn = t->has_sequences ? place >> SEQUENCE_BIT : place;
    return share > 0 &&
           drps_unit_double(drps_rng_at(t->options->seed ^ SPLIT_STREAM, drawn)) < share;
}

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

/* Returns a random number for a sequence's own, of as many bits. Each step of this can be undone,
 * so that no two sequences get the same. */
static uint64_t shuffle_sequence(uint64_t seed, uint64_t number)
{
    enum { BITS = 64 - SEQUENCE_BIT, HALF = BITS / 2, ROUNDS = 4 };
    const uint64_t mask = (UINT64_C(1) << BITS) - 1;
    for (unsigned i = 0; i < ROUNDS; i++) {
        const uint64_t key = drps_rng_at(seed, i);
        number = (number + key) & mask;
        number = number * (key | 1) & mask;
        number ^= number >> HALF;
    }
    return number;
}

/* The number that decides where a sample goes in the final order, or in its cell of the grid.
 * Spools of one bucket keep the order of arrival. */
static uint64_t order_of(const struct taker *t, uint64_t place)
{
    const uint64_t seed = t->options->seed ^ ORDER_STREAM;
    if (!t->shuffled) return place;
    if (!t->has_sequences) return drps_rng_at(seed, place);
    return shuffle_sequence(seed, place >> SEQUENCE_BIT) << SEQUENCE_BIT |
           (place & ((UINT64_C(1) << SEQUENCE_BIT) - 1));
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
    const int test = is_test(t, place);
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
    sample.order = order_of(t, place);
    if (!test)
        time = t->shuffled        ? (uint32_t)(sample.order >> 48)
               : t->has_sequences ? (uint32_t)((place >> SEQUENCE_BIT) % DICT_TIMES)
                                  : (uint32_t)(place / GIVEN_TIME_SAMPLES % DICT_TIMES);
    int rc = drps_dict_add(p->dict, s, first, first + n, time, t->ids, err);
    if (rc > 0) rc = mark_generation(p, err);
    if (rc < 0) return rc;
    sample.ids = t->ids;
    if (!test) count_fields(p, sample.fields, n);
    if (!test && t->has_sequences) p->sequences += sample.fields[0] == DRPS_SEQUENCE_BEGINS;
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
    if (rc < 0 || !t->sample_rows || is_test(t, place))
        return rc < 0 ? rc : add_sample(t, s, i, place, err);
    rc = add_own_row(t, s, i, err);
    return rc < 0 ? rc : add_sample(t, &t->own, 0, place, err);
}

static int take_sample(struct taker *t, const struct drps_samples *s, size_t i,
                       struct drps_err *err)
{
    struct drps_samples hashed, view;
    size_t starts[2];
    const uint64_t place = place_of(t, s, i);
    int rc = check_place(t, s, i, err);
    if (rc == 0 && s->numbers_each) {
        view_numbers(t, s, i, starts, &view);
        return take_read(t, &view, 0, place, err);
    }
    if (rc < 0 || !t->hasher) return rc < 0 ? rc : take_read(t, s, i, place, err);
    rc = hash_sample(t, s, i, starts, &hashed, err);
    return rc < 0 ? rc : take_read(t, &hashed, 0, place, err);
}

/* Returns the worker that keeps the samples of an input; 0 where they do not stay with it. */
static uint32_t owner_of(const struct drps_index_options *o, int test, size_t input)
{
    uint32_t worker = 0;
    if (o->ranks || !drps_samples_stay(o) || (test && !drps_tests_stay(o))) return 0;
    if (test || !o->inputs_of)
        return (uint32_t)(input / ((test ? o->tests_n : o->inputs_n) / o->workers));
    for (size_t end = o->inputs_of[0]; input >= end; end += o->inputs_of[worker])
        worker++;
    return worker;
}

/* Keep where the third label was met, which is one too many for two classes. */
static void note_third_label(struct taker *t, const struct drps_samples *s, size_t i)
{
    struct read_samples *p = t->out;
    if (p->labels.n < 3 || p->third_line || t->options->ranks) return;
    p->third_input = s->input;
    p->third_line = s->lines[i];
}

static int take_all(struct taker *t, struct ahead *a, struct drps_err *err)
{
    struct drps_samples *piece;
    int rc;
    while ((rc = ahead_next(a, &piece, err)) > 0) {
        t->owner = owner_of(t->options, t->test_input, piece->input);
        for (size_t i = 0; rc >= 0 && i < piece->n; i++) {
            rc = take_sample(t, piece, i, err);
            note_third_label(t, piece, i);
        }
        ahead_done(a);
        if (rc >= 0) rc = drps_index_report(t->progress, t->number, 0, err);
        if (rc < 0) return rc;
    }
    return rc;
}

/* ---- The phase ---- */

/* Whether plan.json can hold the text: it must be UTF-8. */
static int fits_json(const char *text)
{
    json_t *j = json_string(text);
    json_decref(j);
    return j != NULL;
}

static int copy_fields(struct read_samples *p, const char *const *names, size_t n,
                       struct drps_err *err)
{
    if (!p->string_names || p->fields) return 0;
    p->fields = calloc(n + 1, sizeof(*p->fields));
    if (!p->fields) return drps_err_set(err, -ENOMEM, "no memory for field names");
    for (p->fields_n = 0; p->fields_n < n; p->fields_n++) {
        if (!fits_json(names[p->fields_n]))
            return drps_err_set(
                err, DRPS_E_FORMAT,
                "the name of feature column %zu is not UTF-8: convert the input first",
                p->fields_n + 1);
        p->fields[p->fields_n] = strdup(names[p->fields_n]);
        if (!p->fields[p->fields_n]) return drps_err_set(err, -ENOMEM, "no memory for field names");
    }
    return 0;
}

/* For prediction. A name that plan.json cannot hold has to be given again there. */
static void copy_label(struct read_samples *p, const struct drps_reader *reader)
{
    const char *label = drps_reader_csv_label(reader);
    if (label && strlen(label) < sizeof(p->label_column) && fits_json(label))
        (void)snprintf(p->label_column, sizeof(p->label_column), "%s", label);
}

/* Returns the length of the name in "name:kind", at most 100. */
static int name_chars(const char *field)
{
    const char *kind = strrchr(field, ':');
    const size_t n = kind ? (size_t)(kind - field) : strlen(field);
    return n < 100 ? (int)n : 100;
}

/* Tells which columns differ from those of the plan that this one goes on from. */
static int other_columns(const struct drps_plan *base, const char *const *names, size_t n,
                         struct drps_err *err)
{
    static const char todo[] =
        "where columns have changed, make a plan of all data together, without a base";
    size_t i = 0;
    while (i < n && i < base->info.fields_n && strcmp(names[i], base->fields[i]) == 0)
        i++;
    if (i == n && i < base->info.fields_n)
        return drps_err_set(err, DRPS_E_CONFIG, "%s has the column %.*s, and the input has not; %s",
                            base->dir, name_chars(base->fields[i]), base->fields[i], todo);
    if (i == base->info.fields_n && i < n)
        return drps_err_set(err, DRPS_E_CONFIG, "the input has the column %.*s, and %s has not; %s",
                            name_chars(names[i]), names[i], base->dir, todo);
    return drps_err_set(err, DRPS_E_CONFIG,
                        "the columns of features are not those of %s: number %zu is '%.100s' there "
                        "and '%.100s' in the input; %s",
                        base->dir, i + 1, i < base->info.fields_n ? base->fields[i] : "(none)",
                        i < n ? names[i] : "(none)", todo);
}

/* An input of another format, or with other columns, would share no feature with what was read
 * before: refuse it. */
static int check_same_shape(const struct taker *t, const struct drps_reader *reader,
                            struct drps_err *err)
{
    const struct read_samples *p = t->out;
    size_t n = 0;
    const char *const *names = drps_reader_fields(reader, &n);
    int same = strcmp(p->format, drps_reader_format(reader)) == 0 &&
               !p->string_names == !drps_reader_has_names(reader) &&
               (!p->string_names || n == p->fields_n);
    for (size_t i = 0; same && p->string_names && i < n; i++)
        same = strcmp(names[i], p->fields[i]) == 0;
    if (same) return 0;
    if (t->options->ranks && !t->test_input)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the input of rank %u (format %s) has not the format and columns of "
                            "the input of rank 0 (%s): give all ranks inputs that are alike",
                            t->options->ranks->rank, drps_reader_format(reader), p->format);
    if (t->options->base_plan && !t->test_input)
        return other_columns(t->options->base_plan, names, n, err);
    return drps_err_set(
        err, DRPS_E_CONFIG,
        "the test input (format %s) has not the format and columns of the training input (%s): "
        "give test files that are like the training files",
        drps_reader_format(reader), p->format);
}

static int in_grid(const struct drps_index_options *o)
{
    return o->order && strcmp(o->order, "grid") == 0;
}

/* 1: samples get their cells, or their groups, once their rows are placed. */
static int is_ordered_later(const struct drps_index_options *o)
{
    return in_grid(o) || (o->order && strcmp(o->order, "micro") == 0);
}

/* Whether an algorithm makes sense of a user and an item as two features, or refuses them. */
static int is_of_ratings(const struct drps_algorithm *a)
{
    return drps_algorithm_rates(a) || a->predictor == DRPS_PREDICTOR_FM ||
           drps_algorithm_is_topic(a);
}

/* The format is that which the first lines look like. */
static int is_detected(const struct drps_index_options *o)
{
    return !o->reader.format || strcmp(o->reader.format, "auto") == 0;
}

/* Three columns of anything look like ratings. */
static void warn_of_ratings(const struct drps_index_options *o, const char *file,
                            const char *format)
{
    if (!is_detected(o) || strcmp(format, "ratings") != 0 || is_of_ratings(o->algorithm)) return;
    drps_log(o->log, DRPS_LOG_WARN,
             "%s is read as ratings: columns 1 and 2 are names of a user and an item; if they are "
             "features, name the format csv and say that there is no header",
             strcmp(file, "-") == 0 ? "standard input" : file);
}

/* The bytes of all training files; 0: not known. */
static uint64_t input_bytes(const struct drps_index_options *o)
{
    uint64_t bytes;
    return drps_input_sizes(o->inputs, o->inputs_n, &bytes) ? bytes : 0;
}

static int open_dict(const struct drps_io *io, const struct drps_index_options *o, const char *dir,
                     struct read_samples *p, struct drps_err *err)
{
    const struct drps_algorithm *a = o->algorithm;
    const int rates = drps_algorithm_rates(a);
    struct dict_options d = {.memory_bytes = o->memory_bytes / 2,
                             .input_bytes = input_bytes(o),
                             .strings = p->string_names && !o->hashing.bits && !p->numbers,
                             .table_by_field = rates,
                             .table_by_key = drps_algorithm_has_sample_rows(a),
                             .by_hash = in_grid(o),
                             .order_seed = o->seed,
                             .hash_seed = o->reader.hash_seed};
    if (o->base_plan) {
        d.base_dir = o->base_plan->dir;
        d.base_rows = o->base_plan->info.rows;
    }
    if (rates && strcmp(p->format, "ratings") != 0)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the algorithm %s needs ratings (user, item, rating); the input is in "
                            "format %s: use the algorithm fm, or name the format ratings if the "
                            "input was taken for something else",
                            a->name, p->format);
    if (strcmp(p->format, "docword") == 0 && !drps_algorithm_is_topic(a) && !d.table_by_key)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "docword has no labels: only topic models read it, and the algorithm "
                            "%s needs labels",
                            a->name);
    if (d.table_by_key && d.strings)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "the algorithm %s needs %s by number, in format docword, libsvm or idx; the "
            "input is in format %s",
            drps_algorithm_is_topic(a) ? a->name : "expr with own",
            drps_algorithm_is_topic(a) ? "words" : "features", p->format);
    return drps_dict_open(io, dir, &d, &p->dict, err);
}

static void drop_classes(struct read_samples *p)
{
    drps_classes_free(p->classes);
    free(p->in_training);
    p->classes = NULL;
    p->in_training = NULL;
}

/* Has data read as those of the plan that this one goes on from, or of rank 0. */
static int take_shape(const struct drps_io *io, const struct drps_index_options *o, const char *dir,
                      struct read_samples *p, struct drps_err *err)
{
    const struct drps_plan *base = o->base_plan;
    if (o->ranks && o->ranks->rank) {
        int classes = 0, rc = drps_shape_take(o->ranks, p, &classes, err);
        if (rc == 0 && !classes) drop_classes(p);
        return rc == 0 ? open_dict(io, o, dir, p, err) : rc;
    }
    if (!base) return 0;
    memcpy(p->format, base->info.format, sizeof(p->format));
    memcpy(p->label_column, base->info.label_column, sizeof(p->label_column));
    p->string_names = drps_plan_reads_names(&base->info);
    p->headless = base->info.headless;
    p->numbers = base->info.numbers;
    int rc = copy_fields(p, (const char *const *)base->fields, base->info.fields_n, err);
    return rc == 0 ? open_dict(io, o, dir, p, err) : rc;
}

static int add_replayed(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    struct taker *t = ctx;
    struct read_samples *p = t->out;
    s->order =
        t->shuffled ? drps_rng_at(t->options->seed ^ REPLAY_ORDER_STREAM, s->order) : p->samples;
    count_fields(p, s->fields, s->n);
    count_sample(p, 0, s);
    p->replayed++;
    return drps_spool_add(p->train, s, err);
}

/* Adds samples of the earlier plan, with rows for ids; they come first. */
static int replay(struct taker *t, struct drps_err *err)
{
    const struct drps_index_options *o = t->options;
    if (!o->base_plan || !(o->replay > 0)) return 0;
    int rc = drps_replay(o->base_plan, o->replay, o->seed, add_replayed, t, err);
    return rc == 0 && t->out->replayed ? mark_generation(t->out, err) : rc;
}

/* Returns 1 if all files are without a byte. One of several machines may have only such files: it
 * has the format and columns from rank 0. */
static int are_empty(const char *const *paths, size_t n)
{
    struct stat st;
    for (size_t i = 0; i < n; i++)
        if (stat(paths[i], &st) || !S_ISREG(st.st_mode) || st.st_size) return 0;
    return 1;
}

/* Whether samples have numbers by place is settled by the first input, or by the base. */
static enum drps_reader_numbers numbers_of(const struct taker *t)
{
    if (!t->test_input && !t->options->base_plan) return DRPS_READER_AS_FITS;
    return t->out->numbers ? DRPS_READER_DENSE : DRPS_READER_SPARSE;
}

static int parse_list(const struct drps_io *io, struct taker *t, const char *const *paths, size_t n,
                      const char *dir, struct drps_err *err)
{
    const struct drps_index_options *o = t->options;
    struct read_samples *p = t->out;
    struct ahead a = {0};
    struct drps_reader_options r = o->reader;

    if (o->ranks && !o->shared && p->dict && are_empty(paths, n)) return 0;
    r.memory_bytes = o->memory_bytes / 8 * 3;
    r.log = o->log;
    r.stop = o->interrupt;
    r.fields = o->has_fields;
    r.one_feature = o->one_feature;
    r.field_count = t->test_input  ? p->field_count
                    : o->base_plan ? o->base_plan->info.field_count
                                   : 0;
    r.numbers = numbers_of(t);
    r.image = o->image;
    r.refuse_empty = 1;
    if (drps_algorithm_draws(o->algorithm) && is_detected(o)) r.format = "ratings";
    if (drps_algorithm_draws(o->algorithm) && !o->implicit.has_least) {
        r.label_optional = 1;
        r.label_missing = 1;
    }
    r.classes = p->classes;
    r.labels = p->read_as;
    r.weights = t->test_input ? o->test_weights : o->weights;
    r.weights_n = t->test_input ? o->test_weights_n : o->weights_n;
    r.label_files = t->test_input ? o->test_labels : o->labels;
    r.label_files_n = t->test_input ? o->test_labels_n : o->labels_n;
    r.share = t->test_input ? o->test_share : o->share;
    r.matrix = t->test_input ? o->test_matrix : o->matrix;
    char *kinds = NULL;
    if (p->dict) r.format = p->format;
    if (p->dict && drps_reader_has_columns(p->format)) { /* they mean what they mean in training */
        kinds = drps_reader_csv_kinds(r.csv_kinds, (const char *const *)p->fields, p->fields_n);
        if (!kinds) return drps_err_set(err, -ENOMEM, "no memory for the columns' kinds");
        r.csv_kinds = kinds;
        r.csv_cross = NULL; /* the kinds have them */
        r.csv_only_kinds = strcmp(p->format, "jsonl") == 0;
        if (strcmp(p->format, "csv") == 0) r.csv_header = drps_csv_header_of(p->headless);
    }
    if (p->dict) r.on_columns = NULL; /* told before */
    int rc = drps_reader_open(io, paths, n, &r, &a.reader, err);
    if (rc < 0 && o->base_plan)
        (void)drps_err_context(err, "the input is read as that of %s", o->base_plan->dir);
    if (rc == 0 && !p->dict) {
        (void)snprintf(p->format, sizeof(p->format), "%s", drps_reader_format(a.reader));
        p->string_names = drps_reader_has_names(a.reader);
        copy_label(p, a.reader);
        p->headless = drps_reader_csv_headless(a.reader);
        p->numbers = drps_reader_has_numbers(a.reader);
        if (!drps_reader_has_classes(a.reader)) drop_classes(p);
        size_t n_fields = 0;
        const char *const *names = drps_reader_fields(a.reader, &n_fields);
        rc = copy_fields(p, names, n_fields, err);
        if (rc == 0) rc = open_dict(io, o, dir, p, err);
        if (rc == 0 && o->ranks) rc = drps_shape_tell(o->ranks, p, err);
        if (rc == 0) warn_of_ratings(o, paths[0], p->format);
    } else if (rc == 0) {
        rc = check_same_shape(t, a.reader, err);
    }
    t->has_sequences = strcmp(p->format, "tokens") == 0;
    if (rc == 0) {
        a.watch = t->progress->watch;
        a.ranks = o->ranks;
        drps_index_watch_next_reader(a.watch);
        rc = ahead_start(&a, err);
        if (rc == 0) {
            rc = take_all(t, &a, err);
            ahead_stop(&a);
        }
        if (!t->test_input && drps_reader_field_count(a.reader) > p->field_count)
            p->field_count = drps_reader_field_count(a.reader);
        if (!t->test_input) p->numbers |= drps_reader_has_numbers(a.reader);
        p->read_as = drps_reader_labels(a.reader);
        if (o->ranks)
            atomic_fetch_add(&o->ranks->read_before, atomic_exchange(&o->ranks->read_bytes, 0));
        p->bytes += drps_reader_bytes(a.reader);
        p->lines += drps_reader_lines(a.reader);
        p->skipped += drps_reader_skipped(a.reader);
        p->weightless += drps_reader_weightless(a.reader);
    }
    for (unsigned i = 0; i < PIECES; i++)
        drps_samples_free(&a.pieces[i]);
    drps_reader_close(a.reader);
    free(kinds);
    return rc;
}

static int open_classes(const struct drps_index_options *o, struct read_samples *p,
                        struct drps_err *err)
{
    const struct drps_algorithm *a = o->algorithm;
    const struct drps_classes *base = o->base_plan ? o->base_plan->info.classes : NULL;
    if (!drps_algorithm_takes_names(a) || (o->base_plan && !base)) return 0;
    const int named = a->labels == DRPS_LABELS_NAMES || base;
    p->read_as = named ? DRPS_READER_NAMES : DRPS_READER_AS_FIRST;
    p->classes = base ? drps_classes_copy(base) : drps_classes_new();
    p->in_training = calloc(DRPS_CLASSES_MOST, sizeof(*p->in_training));
    return p->classes && p->in_training ? 0 : drps_err_set(err, -ENOMEM, "no memory for classes");
}

static int open_hasher(struct taker *t, struct drps_err *err)
{
    const struct drps_index_options *o = t->options;
    if (!o->hashing.bits) return 0;
    t->hasher = drps_hasher_new(&o->hashing, o->reader.hash_seed);
    return t->hasher ? 0 : drps_err_set(err, -ENOMEM, "no memory to hash features");
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
    const struct drps_index_options *options = progress->options;
    struct taker t = {.progress = progress, .options = options, .out = out};
    t.sample_rows = drps_algorithm_has_sample_rows(options->algorithm);
    t.shuffled = !options->order || strcmp(options->order, "given") != 0;
    unsigned buckets = t.shuffled && !is_ordered_later(options) ? SPOOL_BUCKETS : 1;
    const uint64_t memory = options->memory_bytes;
    int rc = open_classes(options, out, err);
    if (rc == 0) rc = open_hasher(&t, err);
    if (rc == 0) rc = take_shape(io, options, dir, out, err);
    if (rc == 0)
        rc = drps_spool_open(io, dir, "train", buckets, memory / SPOOL_TRAIN_SHARE, &out->train,
                             err);
    if (rc == 0)
        rc = drps_spool_open(io, dir, "test", 1, memory / SPOOL_TEST_SHARE, &out->test, err);
    if (rc == 0) rc = replay(&t, err);
    t.inputs = options->first_input;
    if (rc == 0) rc = parse_list(io, &t, options->inputs, options->inputs_n, dir, err);
    t.inputs = options->first_test ? options->first_test : t.inputs + options->inputs_n;
    t.test_input = 1;
    if (rc == 0 && options->tests_n)
        rc = parse_list(io, &t, options->tests, options->tests_n, dir, err);
    if (rc == 0) rc = drps_spool_finish(out->train, err);
    if (rc == 0) rc = drps_spool_finish(out->test, err);
    if (rc == 0) warn_of_values(&t);
    free(t.ids);
    sample_numbers_destroy(&t.numbers);
    drps_samples_free(&t.own);
    drps_hasher_free(t.hasher);
    return rc;
}

void drps_read_samples_free(struct read_samples *p)
{
    if (!p) return;
    drop_classes(p);
    drps_dict_close(p->dict);
    drps_spool_close(p->train);
    drps_spool_close(p->test);
    for (size_t i = 0; p->fields && i < p->fields_n; i++)
        free(p->fields[i]);
    free(p->fields);
    memset(p, 0, sizeof(*p));
}
