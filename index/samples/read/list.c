/* One list of inputs, for training or for evaluation: how it is read, and what was counted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "index/plan/drps_algorithm.h"
#include "index/samples/read/read.h"
#include "index/samples/read/shape.h"

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
    if (!t->places.test_input && !t->options->base_plan) return DRPS_READER_AS_FITS;
    return t->out->numbers ? DRPS_READER_DENSE : DRPS_READER_SPARSE;
}

/* How the input is read, whatever its columns are. */
static struct drps_reader_options options_of(const struct taker *t)
{
    const struct drps_index_options *o = t->options;
    const int test = t->places.test_input;
    struct drps_reader_options r = o->reader;
    r.memory_bytes = o->memory_bytes / 8 * 3;
    r.log = o->log;
    r.stop = o->interrupt;
    r.fields = o->has_fields;
    r.one_feature = o->one_feature;
    r.field_count = test ? t->out->field_count : o->base_plan ? o->base_plan->info.field_count : 0;
    r.numbers = numbers_of(t);
    r.image = o->image;
    r.refuse_empty = 1;
    if (drps_algorithm_draws(o->algorithm) && is_detected(o)) r.format = "ratings";
    if (drps_algorithm_draws(o->algorithm) && !o->implicit.has_least) {
        r.label_optional = 1;
        r.label_missing = 1;
    }
    r.classes = t->out->classes;
    r.labels = t->out->read_as;
    r.weights = test ? o->test_weights : o->weights;
    r.weights_n = test ? o->test_weights_n : o->weights_n;
    r.label_files = test ? o->test_labels : o->labels;
    r.label_files_n = test ? o->test_labels_n : o->labels_n;
    r.share = test ? o->test_share : o->share;
    r.matrix = test ? o->test_matrix : o->matrix;
    return r;
}

/* Have columns mean what they meant in inputs before. *kinds_out is own, and borrowed by *r. */
static int keep_columns(const struct read_samples *p, struct drps_reader_options *r,
                        char **kinds_out, struct drps_err *err)
{
    *kinds_out = NULL;
    if (!p->dict) return 0;
    r->format = p->format;
    r->on_columns = NULL; /* told before */
    if (!drps_reader_has_columns(p->format)) return 0;
    *kinds_out = drps_reader_csv_kinds(r->csv_kinds, (const char *const *)p->fields, p->fields_n);
    if (!*kinds_out) return drps_err_set(err, -ENOMEM, "no memory for the columns' kinds");
    r->csv_kinds = *kinds_out;
    r->csv_cross = NULL; /* the kinds have them */
    r->csv_only_kinds = strcmp(p->format, "jsonl") == 0;
    if (strcmp(p->format, "csv") == 0) r->csv_header = drps_csv_header_of(p->headless);
    return 0;
}

/* The first input of all settles what the others have to be like. */
static int begin_first(const struct drps_io *io, const struct taker *t,
                       const struct drps_reader *reader, const char *path, const char *dir,
                       struct drps_err *err)
{
    const struct drps_index_options *o = t->options;
    struct read_samples *p = t->out;
    if (!drps_reader_has_classes(reader)) drps_read_drop_classes(p);
    int rc = drps_read_learn_columns(p, reader, err);
    if (rc == 0) rc = drps_read_open_dict(io, o, dir, p, err);
    if (rc == 0 && o->ranks) rc = drps_shape_tell(o->ranks, p, err);
    if (rc == 0) warn_of_ratings(o, path, p->format);
    return rc;
}

/* What the reader has counted. */
static void add_counts(const struct taker *t, const struct drps_reader *reader)
{
    struct swap_ranks *ranks = t->options->ranks;
    struct read_samples *p = t->out;
    if (!t->places.test_input) {
        const uint32_t fields = drps_reader_field_count(reader);
        if (fields > p->field_count) p->field_count = fields;
        p->numbers |= drps_reader_has_numbers(reader);
    }
    p->read_as = drps_reader_labels(reader);
    if (ranks) atomic_fetch_add(&ranks->read_before, atomic_exchange(&ranks->read_bytes, 0));
    p->bytes += drps_reader_bytes(reader);
    p->lines += drps_reader_lines(reader);
    p->skipped += drps_reader_skipped(reader);
    p->weightless += drps_reader_weightless(reader);
}

static int take_list(struct taker *t, struct drps_reader *reader, struct drps_err *err)
{
    struct ahead a = {.reader = reader, .watch = t->progress->watch, .ranks = t->options->ranks};
    t->places.has_sequences = strcmp(t->out->format, "tokens") == 0;
    t->places.has_header = strcmp(t->out->format, "csv") == 0 && !t->out->headless;
    drps_index_watch_next_reader(a.watch);
    int rc = drps_ahead_start(&a, err);
    if (rc == 0) {
        rc = drps_take_all(t, &a, err);
        drps_ahead_stop(&a);
    }
    add_counts(t, reader);
    return rc;
}

int drps_read_list(const struct drps_io *io, struct taker *t, const char *const *paths, size_t n,
                   const char *dir, struct drps_err *err)
{
    const struct drps_index_options *o = t->options;
    const struct read_samples *p = t->out;
    struct drps_reader *reader = NULL;
    char *kinds;

    if (o->ranks && !o->shared && p->dict && are_empty(paths, n)) return 0;
    struct drps_reader_options r = options_of(t);
    int rc = keep_columns(p, &r, &kinds, err);
    if (rc < 0) return rc;
    rc = drps_reader_open(io, paths, n, &r, &reader, err);
    if (rc < 0 && o->base_plan)
        (void)drps_err_context(err, "the input is read as that of %s", o->base_plan->dir);
    if (rc == 0)
        rc = p->dict ? drps_read_check_columns(p, o, t->places.test_input, reader, err)
                     : begin_first(io, t, reader, paths[0], dir, err);
    if (rc == 0) rc = take_list(t, reader, err);
    drps_reader_close(reader);
    free(kinds);
    return rc;
}
