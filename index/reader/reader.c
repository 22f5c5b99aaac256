/* The reader itself: opens, chooses the format, and turns pieces of text into pieces of samples. */
#include "index/reader/drps_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/layers/drps_layers.h"
#include "index/reader/drps_parse.h"
#include "index/reader/text/drps_entries.h"

enum { SKIPS_TOLD = 10 };
static const uint64_t default_memory_bytes = 64u << 20, min_memory_bytes = 1u << 20;

const struct drps_format *const drps_formats[] = {
    &drps_format_libsvm,  &drps_format_libffm, &drps_format_ratings, &drps_format_criteo,
    &drps_format_avazu,   &drps_format_csv,    &drps_format_jsonl,   &drps_format_vw,
    &drps_format_docword, &drps_format_idx,    &drps_format_tokens,  NULL};

#define FORMAT_NAMES "libsvm, libffm, ratings, criteo, avazu, csv, jsonl, vw, docword, idx, tokens"

const char *const *drps_reader_formats(void)
{
    static const char *const names[] = {"libsvm", "libffm", "ratings", "criteo", "avazu",  "csv",
                                        "jsonl",  "vw",     "docword", "idx",    "tokens", NULL};
    return names;
}

static void free_arrays(struct drps_samples *s)
{
    free(s->labels);
    free(s->weights);
    free(s->starts);
    free(s->keys);
    free(s->values);
    free(s->names);
    free(s->fields);
    free(s->lines);
    free(s->made);
    free(s->numbers);
    s->labels = NULL;
    s->weights = NULL;
    s->starts = NULL;
    s->keys = NULL;
    s->values = NULL;
    s->names = NULL;
    s->made = NULL;
    s->fields = NULL;
    s->lines = NULL;
    s->numbers = NULL;
    s->label_cap = s->weight_cap = s->start_cap = s->key_cap = s->value_cap = s->name_cap = 0;
    s->made_cap = s->field_cap = s->line_cap = s->number_cap = 0;
}

void drps_samples_free(struct drps_samples *s)
{
    if (!s) return;
    free_arrays(s);
    free(s->text);
    memset(s, 0, sizeof(*s));
}

/* How many elements a piece needs of each array. */
struct need {
    size_t labels, weights, starts, features, names, made, fields, numbers; /* lines: as labels */
};

static uint64_t need_bytes(const struct need *k)
{
    return (uint64_t)(k->labels + k->weights) * sizeof(float) +
           (uint64_t)k->labels * sizeof(uint64_t) + (uint64_t)k->starts * sizeof(size_t) +
           (uint64_t)k->features * (sizeof(uint64_t) + sizeof(float)) +
           (uint64_t)k->names * sizeof(struct drps_name) + k->made +
           (uint64_t)k->fields * sizeof(uint16_t) + (uint64_t)k->numbers * sizeof(float);
}

static uint64_t held_bytes(const struct drps_samples *s)
{
    return (uint64_t)(s->label_cap + s->weight_cap) * sizeof(float) +
           (uint64_t)s->line_cap * sizeof(uint64_t) + (uint64_t)s->start_cap * sizeof(size_t) +
           (uint64_t)s->key_cap * sizeof(uint64_t) + (uint64_t)s->value_cap * sizeof(float) +
           (uint64_t)s->name_cap * sizeof(struct drps_name) + s->made_cap +
           (uint64_t)s->field_cap * sizeof(uint16_t) + (uint64_t)s->number_cap * sizeof(float);
}

/* The old contents are not needed, so nothing is copied and old and new never exist together. */
static int renew(void *array, size_t *cap, size_t n, size_t size)
{
    void *p;

    if (*cap >= n) return 0;
    memcpy(&p, array, sizeof(p));
    free(p);
    p = malloc(n * size); /* n is bounded by the memory budget: no overflow */
    memcpy(array, &p, sizeof(p));
    *cap = p ? n : 0;
    return p ? 0 : -ENOMEM;
}

static int renew_all(struct drps_samples *s, const struct need *k)
{
    int rc = renew(&s->labels, &s->label_cap, k->labels, sizeof(*s->labels));
    if (rc == 0) rc = renew(&s->lines, &s->line_cap, k->labels, sizeof(*s->lines));
    if (rc == 0 && k->weights > 0)
        rc = renew(&s->weights, &s->weight_cap, k->weights, sizeof(*s->weights));
    if (rc == 0) rc = renew(&s->starts, &s->start_cap, k->starts, sizeof(*s->starts));
    if (rc == 0) rc = renew(&s->keys, &s->key_cap, k->features, sizeof(*s->keys));
    if (rc == 0) rc = renew(&s->values, &s->value_cap, k->features, sizeof(*s->values));
    if (rc == 0 && k->names > 0) rc = renew(&s->names, &s->name_cap, k->names, sizeof(*s->names));
    if (rc == 0 && k->made > 0) rc = renew(&s->made, &s->made_cap, k->made, 1);
    if (rc == 0 && k->fields > 0)
        rc = renew(&s->fields, &s->field_cap, k->fields, sizeof(*s->fields));
    if (rc == 0 && k->numbers > 0)
        rc = renew(&s->numbers, &s->number_cap, k->numbers, sizeof(*s->numbers));
    return rc;
}

/* Arrays get a quarter more than needed, so that pieces of about one size settle soon. */
static size_t slack(size_t n)
{
    return n + n / 4;
}

static int prepare_arrays(struct drps_samples *s, const struct need *k, uint64_t budget,
                          struct drps_err *err)
{
    if (k->names == 0) { /* the piece may come from another reader */
        free(s->names);
        s->names = NULL;
        s->name_cap = 0;
    }
    if (k->weights == 0) {
        free(s->weights);
        s->weights = NULL;
        s->weight_cap = 0;
    }
    if (k->fields == 0) {
        free(s->fields);
        s->fields = NULL;
        s->field_cap = 0;
    }
    if (k->labels <= s->label_cap && k->labels <= s->line_cap && k->weights <= s->weight_cap &&
        k->starts <= s->start_cap && k->features <= s->key_cap && k->features <= s->value_cap &&
        k->names <= s->name_cap && k->made <= s->made_cap && k->fields <= s->field_cap &&
        k->numbers <= s->number_cap)
        return 0;
    struct need roomy = {slack(k->labels), slack(k->weights), slack(k->starts), slack(k->features),
                         slack(k->names),  slack(k->made),    slack(k->fields), slack(k->numbers)};
    if (held_bytes(s) + need_bytes(&roomy) > budget) {
        free_arrays(s);
        if (need_bytes(&roomy) > budget) roomy = *k;
    }
    if (renew_all(s, &roomy) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for %llu bytes of samples",
                            (unsigned long long)need_bytes(k));
    return 0;
}

static uint64_t array_budget(const struct drps_reader *r, const struct drps_samples *s)
{
    uint64_t taken = s->text_cap + r->chunks.carry_cap + r->chunks.in.buf_bytes + r->beside_bytes +
                     (r->options.weights_n ? 2 * DRPS_WEIGHTS_BUFFER : 0);
    uint64_t all = r->options.memory_bytes;
    return taken < all ? all - taken : 0;
}

/* What samples need that have so many features together, and names as these. */
static struct need measure_samples(const struct drps_reader *r, size_t samples, size_t features)
{
    return (struct need){.labels = samples + 1,
                         .weights = drps_reads_weights(r) ? samples + 1 : 0,
                         .starts = samples + 2,
                         .features = features,
                         .names = r->format->has_names ? features : 0,
                         .fields = r->options.fields ? features : 0,
                         .numbers = samples * (size_t)r->numbers_each};
}

static struct need measure(const struct drps_reader *r, const char *text, size_t n)
{
    const size_t of_line = r->options.clicks ? 2 : 1; /* samples, at most */
    const size_t lines = drps_text_count(text, n, '\n');
    /* A bad line may write one too many. */
    const size_t features = of_line * r->format->bound(r, text, n, lines) + DRPS_ENTRIES_SLACK;
    const size_t samples = r->format->has_sequences ? features : of_line * lines;
    struct need k = measure_samples(r, samples, features);
    if (r->format->made) k.made = r->format->made(r, text, n, lines);
    return k;
}

/*
 * Choose how many of the n bytes of whole lines are parsed now, and make room for what they yield:
 * all, or, where the arrays would exceed the budget, the lines in the first half, and so on.
 */
static int choose_lines(const struct drps_reader *r, struct drps_samples *s, size_t n,
                        size_t *taken_out, struct drps_err *err)
{
    uint64_t budget = array_budget(r, s);
    struct need k = measure(r, s->text, n);

    while (need_bytes(&k) > budget) {
        const char *feed = memrchr(s->text, '\n', n / 2);
        if (!feed) feed = memchr(s->text, '\n', n);
        size_t fewer = feed ? (size_t)(feed - s->text) + 1 : n;
        if (fewer == n)
            return drps_err_set(
                err, DRPS_E_MEMORY_BUDGET,
                "%s:%llu: a line of %zu bytes needs %llu MiB for its features, %llu MiB are "
                "left: give the reader more memory",
                r->chunks.in.name, (unsigned long long)r->chunks.file_lines + 1, n,
                (unsigned long long)(need_bytes(&k) >> 20) + 1, (unsigned long long)budget >> 20);
        n = fewer;
        k = measure(r, s->text, n);
    }
    *taken_out = n;
    return prepare_arrays(s, &k, budget, err);
}

/* The same for *n samples of a format that is not text, with up to so many features each. */
static int choose_samples(const struct drps_reader *r, struct drps_samples *s, size_t *n,
                          size_t each, struct drps_err *err)
{
    const uint64_t budget = array_budget(r, s);
    struct need k = measure_samples(r, *n, *n * each + DRPS_ENTRIES_SLACK);
    const size_t numbers = r->numbers_each ? r->numbers_each : each;
    while (need_bytes(&k) > budget && *n > 1) {
        *n /= 2;
        k = measure_samples(r, *n, *n * each + DRPS_ENTRIES_SLACK);
    }
    if (need_bytes(&k) > budget)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "%s: a sample of %zu numbers needs %llu MiB in memory, %llu MiB are "
                            "left: give the reader more memory",
                            r->chunks.in.name, numbers,
                            (unsigned long long)(need_bytes(&k) >> 20) + 1,
                            (unsigned long long)budget >> 20);
    return prepare_arrays(s, &k, budget, err);
}

/* Up to a blank, or to the zero that a format has put behind a text. */
static const char *excerpt_end(const char *p, const char *end)
{
    const char *start = p;
    while (p < end && !drps_is_blank(*p) && (*p || p == start))
        p++;
    return p;
}

/* Tell a bad line, or forgive it. */
static int handle_bad(struct drps_reader *r, const struct drps_parse *ps, const char *line,
                      const char *end, uint64_t number, struct drps_err *err)
{
    char text[64], where[64] = "";
    const char *at = ps->bad_at;
    struct drps_err bad = DRPS_ERR_INIT;

    if (r->options.skip_bad_lines && !ps->bad_fatal && r->skipped++ >= SKIPS_TOLD) return 0;
    if (at) {
        (void)drps_excerpt(at, excerpt_end(at, end), text, sizeof(text));
        (void)snprintf(where, sizeof(where),
                       "%llu:", (unsigned long long)(at - line) + 1); /* fits */
    }
    (void)drps_err_set(&bad, DRPS_E_FORMAT, "%s:%llu:%s %s%s%s%s", r->chunks.in.name,
                       (unsigned long long)number, where, ps->bad_why, at ? ": '" : "",
                       at ? text : "", at ? "'" : "");
    if (!r->options.skip_bad_lines || ps->bad_fatal)
        return drps_err_set(err, bad.code, "%s", bad.text);
    drps_log(r->options.log, DRPS_LOG_WARN, "%s; line skipped%s", bad.text,
             r->skipped == SKIPS_TOLD ? "; further bad lines are only counted" : "");
    return 0;
}

/* A line that has a sample, or is bad, has the next weight of the file beside the data. */
static int pass_weight(struct drps_reader *r, uint64_t line, struct drps_err *err)
{
    struct drps_weights *w = &r->weights;
    if (w->has) return drps_weights_pass(w, err);
    return drps_err_set(
        err, DRPS_E_FORMAT, "%s ends after %llu weights, and %s %llu of %s is one sample more",
        w->in.name, (unsigned long long)w->passed, r->format->take ? "sample" : "line",
        (unsigned long long)line, r->chunks.in.name);
}

/* The data's file has ended: so must its weights. */
static int end_weights(const struct drps_reader *r, struct drps_err *err)
{
    const struct drps_weights *w = &r->weights;
    if (!r->options.weights_n || !w->has) return 0;
    return drps_err_set(err, DRPS_E_FORMAT, "%s:%llu: a weight, but %s has no more than %llu %s",
                        w->in.name, (unsigned long long)w->line, r->chunks.in.name,
                        (unsigned long long)w->passed,
                        r->format->take ? "samples" : "lines with a sample");
}

static int parse_lines(struct drps_reader *r, struct drps_parse *ps, size_t n, struct drps_err *err)
{
    char *stop = ps->out->text + n;
    uint64_t number = r->chunks.file_lines;

    for (char *p = ps->out->text, *feed; p < stop; p = feed + 1) {
        feed = memchr(p, '\n', (size_t)(stop - p)); /* there is one: these are whole lines */
        char *end = feed > p && feed[-1] == '\r' ? feed - 1 : feed;
        const size_t nnz = ps->nnz;
        const uint64_t ended = ps->ended;
        int rc = 0;
        number++;
        ps->line = number;
        ps->weight = r->weights.has ? r->weights.weight : 1;
        const int bad = r->format->line(r, ps, p, end) != 0;
        if (bad && ps->nnz > nnz) ps->nnz = nnz;
        if (bad) rc = handle_bad(r, ps, p, end, number, err);
        if (rc == 0 && r->options.weights_n && (bad || ps->ended > ended))
            rc = pass_weight(r, number, err);
        if (rc < 0) return rc;
    }
    r->lines += number - r->chunks.file_lines;
    r->chunks.file_lines = number;
    return 0;
}

static struct drps_parse begin_parse(const struct drps_reader *r, struct drps_samples *out)
{
    return (struct drps_parse){.out = out,
                               .seed = r->options.hash_seed,
                               .weight = 1,
                               .keep_weightless = r->options.keep_weightless};
}

static void begin_out(const struct drps_reader *r, struct drps_samples *out)
{
    out->starts[0] = 0;
    out->input = r->chunks.next_path - 1;
    out->numbers_each = r->numbers_each;
}

static void end_out(struct drps_reader *r, const struct drps_parse *ps)
{
    struct drps_samples *out = ps->out;
    r->weightless += ps->weightless;
    if (r->numbers_each && !r->format->take) drps_numbers_place(r, out);
    out->all_ones = drps_all_ones(out->values, out->starts[out->n]);
}

/* Parse one piece of the current file of text into `out`, which may stay without a sample. */
static int next_lines(struct drps_reader *r, struct drps_samples *out, struct drps_err *err)
{
    struct drps_parse ps = begin_parse(r, out);
    size_t n, lines_end, taken = 0;
    int last;

    int rc = drps_chunks_fill(&r->chunks, &out->text, &out->text_cap, &n, &lines_end, &last, err);
    if (rc == 0) rc = choose_lines(r, out, lines_end, &taken, err);
    if (rc == 0) rc = drps_chunks_keep(&r->chunks, out->text + taken, n - taken, err);
    if (rc < 0) return rc;
    last = last && taken == n;
    begin_out(r, out);
    ps.made = out->made;
    if (r->format->begin_piece) r->format->begin_piece(r, &ps);
    rc = parse_lines(r, &ps, taken, err);
    if (rc == 0 && r->format->end_piece) rc = r->format->end_piece(r, &ps, last, err);
    if (rc == 0 && last) rc = end_weights(r, err);
    if (rc < 0) return rc;
    end_out(r, &ps);
    r->bytes += taken;
    r->chunks.in_file = !last;
    return 0;
}

/* Take n samples of a format that is not text. */
static int take_samples(struct drps_reader *r, struct drps_parse *ps, size_t n,
                        struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        ps->line = ++r->chunks.file_lines;
        ps->weight = r->weights.has ? r->weights.weight : 1;
        rc = r->format->take(r, ps, err);
        if (rc == 0 && r->options.weights_n) rc = pass_weight(r, ps->line, err);
        r->lines++;
    }
    return rc;
}

/* The next piece of a file that is not text. */
static int next_samples(struct drps_reader *r, struct drps_samples *out, struct drps_err *err)
{
    struct drps_parse ps = begin_parse(r, out);
    size_t n = 0, each = 0;
    int rc = r->format->ready(r, &n, &each, err);
    if (rc < 0) return rc;
    if (n == 0) {
        r->chunks.in_file = 0;
        return end_weights(r, err);
    }
    rc = choose_samples(r, out, &n, each, err);
    if (rc < 0) return rc;
    begin_out(r, out);
    rc = take_samples(r, &ps, n, err);
    if (rc == 0) end_out(r, &ps);
    return rc;
}

static int next_piece(struct drps_reader *r, struct drps_samples *out, struct drps_err *err)
{
    return r->format->take ? next_samples(r, out, err) : next_lines(r, out, err);
}

/* Returns 1 while a file is open, 0 at the end. */
static int ensure_file(struct drps_reader *r, struct drps_err *err)
{
    if (!r->chunks.in_file) {
        int rc = drps_chunks_next_file(&r->chunks, err);
        if (rc <= 0) return rc;
        r->begun = 0;
    }
    if (!r->begun && r->format->begin_file && !r->chunks.within) r->format->begin_file(r);
    if (!r->begun && r->options.weights_n) {
        int rc = drps_weights_open(&r->weights, r->options.weights[r->chunks.next_path - 1], err);
        if (rc < 0) return rc;
    }
    r->begun = 1;
    return 1;
}

static void make_one_feature(const struct drps_reader *r, struct drps_samples *out)
{
    if (!r->options.one_feature || r->format->has_names || out->numbers_each || !out->n) return;
    memset(out->keys, 0, out->starts[out->n] * sizeof(*out->keys));
}

int drps_reader_next(struct drps_reader *r, struct drps_samples *out, struct drps_err *err)
{
    out->n = 0;
    out->all_ones = 1;
    if (r->failed) return drps_err_set(err, r->failed, "reading the input has failed before");
    if (r->options.matrix) {
        const int found = drps_matrix_source_next(r, out, err);
        if (found < 0) r->failed = found;
        make_one_feature(r, out);
        return found;
    }
    while (out->n == 0) {
        int rc = ensure_file(r, err);
        if (rc == 0) return 0;
        if (rc > 0) rc = next_piece(r, out, err);
        if (rc < 0) {
            out->n = 0;
            r->failed = rc;
            return rc;
        }
    }
    make_one_feature(r, out);
    return 1;
}

static int check_weight_options(const struct drps_reader_options *o, size_t n_paths,
                                struct drps_err *err)
{
    if ((o->weights_n != 0) + (o->weight != NULL) + (o->clicks || o->impressions) > 1)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "weights come from a file beside the data, from a column, or from "
                            "clicks and impressions: give one of these");
    if (!o->clicks != !o->impressions)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "clicks and impressions are two columns: name both");
    if (o->clicks && o->csv_label)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "clicks and impressions are the labels: name no label column");
    for (size_t i = 0; i < o->weights_n; i++)
        if (strcmp(o->weights[i], "-") == 0)
            return drps_err_set(err, DRPS_E_CONFIG,
                                "weights beside the data are in a file: '-' (stdin) is none");
    if (o->weights_n && o->weights_n != n_paths)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%zu files of weights for %zu of data: name one for each, in the same "
                            "order",
                            o->weights_n, n_paths);
    return 0;
}

static int check_label_files(const struct drps_reader_options *o, size_t n_paths,
                             struct drps_err *err)
{
    for (size_t i = 0; i < o->label_files_n; i++)
        if (strcmp(o->label_files[i], "-") == 0)
            return drps_err_set(err, DRPS_E_CONFIG,
                                "labels beside the data are in a file: '-' (stdin) is none");
    if (!o->label_files_n || o->label_files_n == n_paths) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%zu files of labels for %zu of data: name one for each, in the same order",
                        o->label_files_n, n_paths);
}

static int check_options(const struct drps_reader *r, struct drps_err *err)
{
    if (r->options.memory_bytes < min_memory_bytes)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the reader's memory is %llu bytes, it needs at least 1 MiB",
                            (unsigned long long)r->options.memory_bytes);
    char c = r->options.csv_separator;
    if (c == '\n' || c == '\r' || c == '"' || c == '.' || c == '-' || c == '+' ||
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        (unsigned char)c >= 0x80)
        return drps_err_set(err, DRPS_E_CONFIG, "byte 0x%02x cannot separate csv columns",
                            (unsigned char)c);
    return 0;
}

/* What paths lead to. */
struct inputs {
    int pipes;      /* one is a pipe, or standard input, which may be one */
    uint64_t bytes; /* of all files */
};

/*
 * All paths are looked at before the first is read, so that a misspelt one does not fail hours
 * later.
 */
static int check_paths(const struct drps_io *io, const char *const *paths, size_t n,
                       struct inputs *out, struct drps_err *err)
{
    int stdins = 0;
    memset(out, 0, sizeof(*out));
    if (n == 0) return drps_err_set(err, DRPS_E_CONFIG, "no input files");
    for (size_t i = 0; i < n; i++) {
        uint64_t bytes = 0;
        int fd;
        if (strcmp(paths[i], "-") == 0) {
            if (++stdins > 1) return drps_err_set(err, DRPS_E_CONFIG, "'-' (stdin) is named twice");
            out->pipes = 1;
            continue;
        }
        int rc = drps_io_open_data(io, paths[i], 1, &fd, err);
        if (rc < 0) return rc;
        out->pipes |= rc;
        if (rc == 0) rc = drps_io_size(io, fd, paths[i], &bytes, err);
        drps_io_close(io, fd);
        if (rc < 0) return rc;
        out->bytes += bytes;
    }
    return 0;
}

static const struct drps_format *find_format(const char *name)
{
    for (size_t i = 0; drps_formats[i]; i++)
        if (strcmp(drps_formats[i]->name, name) == 0) return drps_formats[i];
    return NULL;
}

/* What options say that is of lines of csv alone, or NULL. */
static const char *given_of_lines(const struct drps_reader_options *o)
{
    return o->csv_separator ? "a separator" : o->csv_header ? "a header" : NULL;
}

/* What options say of columns, or NULL. */
static const char *given_of_columns(const struct drps_reader_options *o)
{
    return o->csv_label   ? "a label column"
           : o->csv_kinds ? "kinds of columns"
           : o->csv_scale ? "a scale"
           : o->csv_cross ? "crosses of columns"
                          : NULL;
}

static int detect_format(struct drps_reader *r, struct drps_err *err)
{
    const struct drps_chunks *c = &r->chunks;
    char text[100] = "";

    const int of_columns = given_of_columns(&r->options) || given_of_lines(&r->options);
    const int names = drps_reads_classes(&r->options);
    const char *label = r->options.clicks ? r->options.clicks : r->options.csv_label;
    if (r->options.csv_header == DRPS_CSV_NO_HEADER) r->format = &drps_format_csv;
    if (!r->format && (!names || r->options.labels != DRPS_READER_NAMES))
        r->format = drps_format_detect(c->carry, c->carry_n, c->in.ended, label, of_columns, 0);
    if (!r->format && names)
        r->format = drps_format_detect(c->carry, c->carry_n, c->in.ended, label, of_columns, 1);
    /* A fourth column that is said to be the weight tells ratings, whatever its numbers are. */
    if (!r->format && r->options.weight && strcmp(r->options.weight, "4") == 0 && !label)
        r->format = &drps_format_ratings;
    if (r->format) return 0;
    const char *p = c->carry, *end = c->carry + c->carry_n;
    while (p < end && (*p == '\n' || *p == '\r' || drps_is_blank(*p)))
        p++;
    if (p < end) {
        const char *feed = memchr(p, '\n', (size_t)(end - p));
        (void)drps_excerpt(p, feed ? feed : end, text, sizeof(text));
    }
    if (drps_format_looks_headless(c->carry, c->carry_n, c->in.ended))
        return drps_err_set(err, DRPS_E_FORMAT,
                            "%s: looks like csv without a header: '%s'; say that there is none, "
                            "and which column is the label",
                            c->in.name, text);
    const struct drps_format *named =
        drps_format_detect(c->carry, c->carry_n, c->in.ended, label, of_columns, 1);
    if (named)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "%s: looks like %s whose labels are names: '%s'; here labels are "
                            "numbers: names are for the algorithm mlr, for svm, and for nets that "
                            "end in `full classes`",
                            c->in.name, named->name, text);
    return drps_err_set(err, DRPS_E_FORMAT,
                        "%s: no format fits the first lines: '%s'; name one of %s", c->in.name,
                        text, FORMAT_NAMES);
}

/* What is said of columns would be in vain for other formats. */
static int check_csv_options(const struct drps_reader *r, struct drps_err *err)
{
    const char *of_lines = given_of_lines(&r->options);
    const char *of_columns = r->format == &drps_format_jsonl ? NULL : given_of_columns(&r->options);
    const char *given = of_columns ? of_columns : of_lines;
    const char *file = r->chunks.in.name, *format = r->format->name;
    const char *others = of_columns ? " and jsonl" : "";
    const int could_be_csv = r->format == &drps_format_ratings || r->format == &drps_format_avazu ||
                             r->format == &drps_format_criteo;
    if (!given || r->format == &drps_format_csv) return 0;
    if (!could_be_csv)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: to name %s is for csv%s, and this is read as %s, which has no %s: "
                            "leave it out",
                            file, given, others, format, of_columns ? "columns" : "such thing");
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s: to name %s is for csv%s, and this is read as %s: leave it out, or "
                        "name the format csv",
                        file, given, others, format);
}

/* Sequences have their labels, and the marks of where they begin, whatever was asked for. */
static int check_sequences(struct drps_reader *r, struct drps_err *err)
{
    struct drps_reader_options *o = &r->options;
    if (!r->format->has_sequences) return 0;
    if (!drps_reads_classes(o))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: the label of a token is the next token, which is a class, and "
                            "here labels are numbers: name another format, or use a net that ends "
                            "in `full classes`",
                            r->chunks.in.name);
    if (!o->sequence) o->sequence = o->sequence_lines ? DRPS_SEQUENCE_MOST : DRPS_SEQUENCE_USUAL;
    if (o->sequence > DRPS_SEQUENCE_MOST)
        return drps_err_set(err, DRPS_E_CONFIG, "%s: sequences of %u samples: at most %d",
                            r->chunks.in.name, o->sequence, DRPS_SEQUENCE_MOST);
    o->labels = DRPS_READER_NAMES;
    o->fields = 1;
    return 0;
}

static int check_classes(struct drps_reader *r, struct drps_err *err)
{
    if (!drps_reads_classes(&r->options) || r->format->has_classes) return 0;
    if (r->options.labels != DRPS_READER_NAMES) {
        r->options.classes = NULL;
        r->options.known_classes = NULL;
        return 0;
    }
    return drps_err_set(
        err, DRPS_E_CONFIG,
        "%s: labels that are classes are read from libsvm, libffm, csv, jsonl, vw and "
        "idx, and this is read as %s",
        r->chunks.in.name, r->format->name);
}

/* Whether the format can have what weights are asked for. */
static int check_weights(const struct drps_reader *r, struct drps_err *err)
{
    const struct drps_reader_options *o = &r->options;
    const int csv = r->format == &drps_format_csv;
    const char *file = r->chunks.in.name, *format = r->format->name;
    if (o->weights_n && r->format == &drps_format_docword)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: weights are for lines that each have a sample, and in format "
                            "docword a sample has several",
                            file);
    if (o->weights_n && r->format->has_sequences)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: weights are for lines that each have a sample, and in format %s a "
                            "line has several",
                            file, format);
    if (o->clicks && !csv)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: clicks and impressions are columns of csv, and this is read as %s",
                            file, format);
    if (!o->weight || csv || r->format == &drps_format_jsonl) return 0;
    if (r->format != &drps_format_ratings)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: a column of weights is for csv, jsonl and ratings, and this is "
                            "read as %s: give the weights in a file beside it",
                            file, format);
    if (strcmp(o->weight, "4") == 0) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s: of ratings the weight is column 4, which is not '%s'", file,
                        o->weight);
}

static int check_labels(const struct drps_reader *r, struct drps_err *err)
{
    if (!r->options.label_files_n || r->format == &drps_format_idx) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s: files of labels are for idx, and this is read as %s, which has its "
                        "labels with the samples: leave them out",
                        r->chunks.in.name, r->format->name);
}

static int check_fields(const struct drps_reader *r, struct drps_err *err)
{
    if (!r->options.fields || r->format->has_fields) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s: a field-aware model needs fields, and format %s has none: give the "
                        "data as libffm, as csv, jsonl, criteo, avazu or ratings, whose "
                        "columns are the fields, or as idx (in a net, `bag` needs none)",
                        r->chunks.in.name, r->format->name);
}

static int check_empty(const struct drps_reader *r, struct drps_err *err)
{
    const struct drps_chunks *c = &r->chunks;
    if (!r->options.refuse_empty || c->carry_n) return 0;
    return drps_err_set(err, DRPS_E_FORMAT, "%s is empty%s: there are no samples to read",
                        c->in.name, c->n_paths > 1 ? ", and so are all files before it" : "");
}

static int choose_format(struct drps_reader *r, struct drps_err *err)
{
    const char *name = r->options.format;
    int rc = drps_chunks_first_file(&r->chunks, err); /* an empty one says nothing of the format */
    if (rc == 0) rc = check_empty(r, err);
    if (rc < 0) return rc;
    if (name && strcmp(name, "auto") != 0) {
        r->format = find_format(name);
        rc = r->format
                 ? 0
                 : drps_err_set(err, DRPS_E_CONFIG, "unknown input format '%s', known are: %s",
                                name, FORMAT_NAMES);
    } else {
        rc = detect_format(r, err);
    }
    if (rc == 0) rc = check_csv_options(r, err);
    if (rc == 0) rc = check_sequences(r, err);
    if (rc == 0) rc = check_fields(r, err);
    if (rc == 0) rc = check_classes(r, err);
    if (rc == 0) rc = check_weights(r, err);
    if (rc == 0) rc = check_labels(r, err);
    if (rc == 0 && r->format->open)
        rc = r->format->open(r, r->chunks.carry, r->chunks.carry_n, err);
    return rc == 0 ? drps_numbers_settle(r, err) : rc;
}

/* ---- A share of the input ---- */

static int check_share(const struct drps_reader *r, struct drps_err *err)
{
    const struct drps_reader_share *s = r->options.share;
    if (!s->begin.byte && !s->end.byte) return 0;
    if (r->format == &drps_format_docword || r->format->take || r->format->has_sequences)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: a file of format %s cannot be read in shares: give as many files "
                            "as there are readers",
                            r->chunks.in.name, r->format->name);
    if (r->options.weights_n)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: a file that has its weights in a file beside it cannot be read in "
                            "shares: give as many files as there are readers",
                            r->chunks.in.name);
    return 0;
}

/* Lines up to the first that has a sample; nothing is kept of them. */
static int pass_lines(struct drps_reader *r, struct drps_samples *out, size_t n,
                      struct drps_err *err)
{
    struct drps_parse ps = {.out = out, .seed = r->options.hash_seed, .weight = 1};
    char *stop = out->text + n;
    uint64_t number = 0;
    out->starts[0] = 0;
    ps.made = out->made;
    for (char *p = out->text, *feed; p < stop && !ps.ended; p = feed + 1) {
        feed = memchr(p, '\n', (size_t)(stop - p));
        char *end = feed > p && feed[-1] == '\r' ? feed - 1 : feed;
        number++;
        if (r->format->line(r, &ps, p, end) != 0 && ps.bad_fatal)
            return handle_bad(r, &ps, p, end, number, err);
        ps.nnz = out->starts[out->n];
    }
    return 0;
}

/* See how the file begins whose first block was read: its header, its separator, and what kind its
 * first label is. Whoever reads on in it, and other files, has to know. */
static int see_beginning(struct drps_reader *r, struct drps_err *err)
{
    const struct drps_chunks *c = &r->chunks;
    const char *feed = memrchr(c->carry, '\n', c->carry_n);
    const size_t lines_end = feed ? (size_t)(feed - c->carry) + 1 : 0;
    const size_t bytes = lines_end ? lines_end : c->in.ended ? c->carry_n : 0;
    struct drps_samples out = {0};
    size_t taken = 0;
    if (c->carry_n && !bytes)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: the first line is longer than %zu bytes: it cannot be read in "
                            "shares",
                            c->in.name, c->carry_n);
    out.text = malloc(bytes + 1 + DRPS_CHUNK_PAD);
    if (!out.text) return drps_err_set(err, -ENOMEM, "no memory for the first lines");
    if (bytes) memcpy(out.text, c->carry, bytes);
    memset(out.text + bytes, 0, 1 + DRPS_CHUNK_PAD);
    if (bytes && !lines_end) out.text[bytes] = '\n';
    if (r->format->begin_file) r->format->begin_file(r);
    int rc = choose_lines(r, &out, bytes + (bytes && !lines_end), &taken, err);
    if (rc == 0) rc = pass_lines(r, &out, taken, err);
    drps_samples_free(&out);
    return rc;
}

/* The format is chosen, and the first block of the first file is there: go to the share. */
static int begin_share(struct drps_reader *r, struct drps_err *err)
{
    const struct drps_reader_share *s = r->options.share;
    struct drps_chunks *c = &r->chunks;
    if (!s) return 0;
    int rc = check_share(r, err);
    if (rc == 0 && !r->format->take && (s->begin.path || s->begin.byte)) rc = see_beginning(r, err);
    if (rc == 0 && s->begin.byte && c->next_path != s->begin.path + 1) {
        drps_chunks_rewind(c);
        c->next_path = s->begin.path;
        rc = drps_chunks_next_file(c, err);
        if (rc > 0) rc = see_beginning(r, err);
    }
    drps_chunks_take_share(c, s);
    return rc;
}

static int open_matrix(struct drps_reader *r, const char *name, struct drps_err *err)
{
    r->chunks.in.name = name;
    r->format = find_format(r->options.format ? r->options.format : "libsvm");
    if (r->format != &drps_format_libsvm && r->format != &drps_format_libffm &&
        r->format != &drps_format_ratings)
        return drps_err_set(err, DRPS_E_CONFIG, "%s can only be read as libsvm, libffm or ratings",
                            name);
    int rc = check_csv_options(r, err);
    if (rc == 0) rc = check_fields(r, err);
    if (rc == 0) rc = check_classes(r, err);
    if (rc == 0 && r->format->open) rc = r->format->open(r, NULL, 0, err);
    if (rc == 0) rc = drps_matrix_source_open(r, err);
    return rc == 0 ? drps_numbers_settle(r, err) : rc;
}

static int open_paths(struct drps_reader *r, const struct drps_io *io, const char *const *paths,
                      size_t n_paths, struct drps_err *err)
{
    struct inputs inputs = {0}, weights, labels;
    int rc = check_weight_options(&r->options, n_paths, err);
    if (rc == 0) rc = check_label_files(&r->options, n_paths, err);
    if (rc == 0) rc = check_paths(io, paths, n_paths, &inputs, err);
    r->read_once = inputs.pipes;
    r->input_bytes = inputs.bytes;
    if (rc == 0 && r->options.weights_n)
        rc = check_paths(io, r->options.weights, r->options.weights_n, &weights, err);
    if (rc == 0 && r->options.label_files_n)
        rc = check_paths(io, r->options.label_files, r->options.label_files_n, &labels, err);
    if (rc == 0)
        rc = drps_chunks_init(&r->chunks, io, paths, n_paths, r->options.memory_bytes, err);
    r->chunks.in.stop = r->options.stop;
    if (rc == 0 && r->options.weights_n)
        rc = drps_weights_init(&r->weights, io, r->options.stop, r->chunks.in.codec_limit_bytes,
                               err);
    if (rc == 0) rc = choose_format(r, err);
    return rc == 0 ? begin_share(r, err) : rc;
}

int drps_reader_open(const struct drps_io *io, const char *const *paths, size_t n_paths,
                     const struct drps_reader_options *options, struct drps_reader **r_out,
                     struct drps_err *err)
{
    *r_out = NULL;
    struct drps_reader *r = calloc(1, sizeof(*r));
    if (!r) return drps_err_set(err, -ENOMEM, "reader");
    if (options) r->options = *options;
    if (r->options.memory_bytes == 0) r->options.memory_bytes = default_memory_bytes;

    int rc = check_options(r, err);
    if (rc == 0)
        rc = r->options.matrix ? open_matrix(r, paths[0], err)
                               : open_paths(r, io, paths, n_paths, err);
    if (rc == 0) {
        *r_out = r;
        r = NULL;
    }
    drps_reader_close(r);
    return rc;
}

void drps_reader_close(struct drps_reader *r)
{
    if (!r) return;
    if (r->format && r->format->close && r->state) r->format->close(r);
    drps_chunks_destroy(&r->chunks);
    drps_weights_destroy(&r->weights);
    free(r->fields);
    free(r);
}

const char *drps_reader_format(const struct drps_reader *r)
{
    return r->format->name;
}

int drps_reader_has_classes(const struct drps_reader *r)
{
    return drps_reads_classes(&r->options);
}

enum drps_reader_labels drps_reader_labels(const struct drps_reader *r)
{
    return r->options.labels;
}

int drps_reader_has_names(const struct drps_reader *r)
{
    return r->format->has_names;
}

const char *const *drps_reader_fields(const struct drps_reader *r, size_t *n_out)
{
    *n_out = r->n_fields;
    return r->fields;
}

int drps_reader_has_numbers(const struct drps_reader *r)
{
    return r->numbers_each != 0;
}

uint32_t drps_reader_field_count(const struct drps_reader *r)
{
    return r->field_count;
}

uint64_t drps_reader_file_bytes(const struct drps_reader *r)
{
    return r->chunks.in.all_bytes;
}

uint64_t drps_reader_lines(const struct drps_reader *r)
{
    return r->lines;
}

uint64_t drps_reader_bytes(const struct drps_reader *r)
{
    return r->bytes;
}

uint64_t drps_reader_skipped(const struct drps_reader *r)
{
    return r->skipped;
}

uint64_t drps_reader_weightless(const struct drps_reader *r)
{
    return r->weightless;
}
