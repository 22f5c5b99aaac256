/* Decides what columns are of which nothing is said: the first lines decide. Scales and bins are
 * learned from all lines where the input can be read twice, as the first lines of a file that is
 * sorted by a column show only a part of its numbers. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/drps_alloc.h"
#include "index/reader/columns.h"
#include "index/reader/scales/drps_numbers.h"
#include "index/reader/text/drps_date.h"

enum {
    FEW_VALUES = 50, /* fewer numbers say neither that they are codes nor how large they are */
    FEW_CODES = 10,  /* whole numbers of so few values are codes */
    LARGE = 10,      /* a root mean square above it asks for a scale */
    /* In larger input only a share of the lines is counted, so that counting takes no longer. */
    COUNTED_BYTES = 64 << 20,
    ENOUGH_VALUES = 20, /* fewer do not say what a column is meant for */
    SAMPLES_SHARE = 8,  /* of the reader's memory, for samples of columns */
};

struct seen {
    uint64_t numbers, missing, dates;
    uint64_t commas;     /* fields that would be numbers if they had a decimal point */
    uint64_t others;     /* all fields that are no numbers, those with commas included */
    uint64_t other_line; /* line of the first of them, from 1; 0: there is none */
    char other[32];      /* the text of it */
    int padded, broken;  /* a number begins with 0 and more digits; is none that is whole */
    int pair;            /* of words that are labels; 0: none */
    size_t first;        /* of its numbers among all values, once these are sorted */
    const char *as;      /* why whole numbers are categories; NULL: they are not */
};

struct value {
    uint32_t column;
    float v;
};

struct drps_first_lines {
    struct seen *seen; /* own: [columns] */
    size_t columns, columns_cap;
    struct value *values; /* own: numbers of all columns */
    size_t n, cap;
    struct drps_numbers *all; /* own: [columns] of all lines; NULL: the kinds are not decided yet */
    struct drps_reader *r;
    int bad; /* a field of the line; the line's numbers are values[0 .. n) while all lines come */
};

/* ---- Weighing ---- */

struct drps_first_lines *drps_first_lines_new(void)
{
    return calloc(1, sizeof(struct drps_first_lines));
}

void drps_first_lines_free(struct drps_first_lines *f)
{
    if (!f) return;
    for (size_t i = 0; f->all && i < f->columns; i++)
        drps_numbers_destroy(&f->all[i]);
    free(f->all);
    free(f->seen);
    free(f->values);
    free(f);
}

static int reserve(struct drps_first_lines *f, size_t columns, struct drps_err *err)
{
    if (drps_array_reserve(&f->seen, &f->columns_cap, columns, sizeof(*f->seen)) ||
        drps_array_reserve(&f->values, &f->cap, f->n + 1, sizeof(*f->values)))
        return drps_err_set(err, -ENOMEM, "the first lines");
    if (columns > f->columns) {
        memset(f->seen + f->columns, 0, (columns - f->columns) * sizeof(*f->seen));
        f->columns = columns;
    }
    return 0;
}

/* Returns 1 for what can only be meant for a number: it is infinite, or too large. */
static int number_shaped(const char *p, const char *end)
{
    if (p < end && (*p == '-' || *p == '+')) p++;
    const size_t n = (size_t)(end - p);
    if ((n == 3 && strncasecmp(p, "inf", n) == 0) || (n == 8 && strncasecmp(p, "infinity", n) == 0))
        return 1;
    return n > 0 && strspn(p, "0123456789.eE+-") >= n &&
           strcmp(drps_number_why(p), "is too large") == 0;
}

/* Returns 1 for a number with a decimal comma, as in 3,14. */
static int has_decimal_comma(const char *p, const char *end)
{
    size_t before = 0, behind = 0;
    if (p < end && (*p == '-' || *p == '+')) p++;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        before++;
    if (p == end || *p++ != ',') return 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        behind++;
    return p == end && before && behind;
}

static void weigh_number(struct seen *s, const char *p, const char *end)
{
    s->numbers++;
    if (p < end && (*p == '-' || *p == '+')) p++;
    s->padded |= end - p > 1 && p[0] == '0' && p[1] >= '0' && p[1] <= '9';
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    s->broken |= p != end;
}

static void weigh(struct drps_first_lines *f, size_t column, const char *p, const char *end,
                  uint64_t line, int is_text)
{
    struct seen *s = &f->seen[column];
    struct drps_date date;
    float v;
    if (!is_text)
        while (p < end && drps_is_blank(*p))
            p++;
    if (!is_text)
        while (p < end && drps_is_blank(end[-1]))
            end--;
    if (drps_columns_missing(p, end)) {
        s->missing++;
    } else if (!is_text && drps_columns_number(p, end, &v)) {
        weigh_number(s, p, end);
        f->values[f->n++] = (struct value){(uint32_t)column, v};
    } else if (!is_text && number_shaped(p, end)) {
        s->numbers++;
        s->broken = 1;
    } else if (drps_date_read(p, end, &date)) {
        s->dates++;
    } else {
        s->commas += (uint64_t)has_decimal_comma(p, end);
        if (s->others++) return;
        s->other_line = line;
        (void)drps_excerpt(p, end, s->other, sizeof(s->other));
    }
}

/* Whether something is to be learned of the column. */
static int is_open(const struct drps_column *c)
{
    return c->kind == -1 || (c->kind == DRPS_COLUMN_BINS && c->bins) ||
           (c->kind == DRPS_COLUMN_NUMBER && !c->final &&
            (c->scale == DRPS_SCALE_AUTO || c->scale >= DRPS_SCALE_STANDARD));
}

static int wanted(const struct drps_columns *c)
{
    for (size_t i = 0; i < c->n; i++) /* which words the label has is told */
        if (is_open(&c->columns[i]) || c->columns[i].kind == DRPS_COLUMN_LABEL) return 1;
    return 0;
}

/* Keep a number of a column whose scale or bins are to be learned until its line ends. Such a
 * column refuses no number: any other text is checked. */
static void keep(struct drps_first_lines *f, const struct drps_columns *c, size_t column, char *p,
                 char *end, int is_text)
{
    float v;
    if (!is_text && is_open(&c->columns[column]) && drps_columns_number(p, end, &v))
        f->values[f->n++] = (struct value){(uint32_t)column, v};
    else
        f->bad |= drps_columns_check(f->r, &c->columns[column], p, end) < 0;
}

int drps_first_lines_learning(const struct drps_first_lines *f)
{
    return f->all != NULL;
}

int drps_first_lines_end(struct drps_first_lines *f, const struct drps_columns *c, int good,
                         struct drps_err *err)
{
    int rc = 0;
    if (!f->all) return 0;
    if (f->r->options.clicks && c->clicks > c->impressions) good = 0;
    for (size_t i = 0; rc == 0 && good && !f->bad && i < f->n; i++)
        rc = drps_numbers_add(&f->all[f->values[i].column], f->values[i].v, err);
    f->n = 0;
    f->bad = 0;
    return rc;
}

int drps_first_lines_add(struct drps_first_lines *f, const struct drps_columns *c, size_t column,
                         char *text, char *text_end, uint64_t line, int is_text,
                         struct drps_err *err)
{
    float label;
    const int rc = reserve(f, c->n, err);
    if (rc < 0) return rc;
    if (f->all) {
        keep(f, c, column, text, text_end, is_text);
        return 0;
    }
    if (is_open(&c->columns[column])) weigh(f, column, text, text_end, line, is_text);
    if (c->columns[column].kind == DRPS_COLUMN_LABEL && !c->named && !f->seen[column].pair)
        (void)drps_columns_label_word(text, text_end, &label, &f->seen[column].pair);
    return 0;
}

/* ---- Numbers of a column, sorted ---- */

struct numbers {
    const struct value *v; /* [n] increasing */
    size_t n, distinct, zeros;
};

static int compare_values(const void *a, const void *b)
{
    const struct value *x = a, *y = b;
    if (x->column != y->column) return x->column < y->column ? -1 : 1;
    return (x->v > y->v) - (x->v < y->v);
}

/* The column's numbers; *at goes on to those of the next. */
static struct numbers take_numbers(const struct drps_first_lines *f, size_t column, size_t *at)
{
    struct numbers x = {.v = f->values ? f->values + *at : NULL};
    for (; *at < f->n && f->values[*at].column == column; ++*at, x.n++) {
        x.zeros += x.v[x.n].v == 0;
        x.distinct += !x.n || x.v[x.n].v != x.v[x.n - 1].v;
    }
    return x;
}

/* ---- Deciding ---- */

/* Whether a column's name says that it names things: its last word is id, ip or zip. */
static int names_things(const char *name)
{
    static const char *const words[] = {"id", "ip", "zip", "zipcode", "postcode", "uid", "uuid"};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const size_t bytes = strlen(words[i]);
        if (n < bytes || strcasecmp(name + n - bytes, words[i]) != 0) continue;
        if (n == bytes || strchr("_-. ", name[n - bytes - 1])) return 1;
        if (name[n - bytes] <= 'Z' && name[n - bytes - 1] >= 'a') return 1; /* userId */
    }
    return 0;
}

/* Returns why whole numbers are codes, of which each is a category; NULL: they are numbers. */
static const char *codes(const struct seen *s, const struct numbers *x, const char *name)
{
    if (s->broken || !x->n) return NULL;
    if (s->padded) return "with zeros in front";
    if (x->n < FEW_VALUES || (x->v[0].v >= 0 && x->v[x->n - 1].v <= 1)) return NULL;
    if (names_things(name)) return "that name things, by the column's name";
    if (2 * x->zeros > x->n || x->n < 4 * x->distinct) return NULL;
    const double range = (double)x->v[x->n - 1].v - (double)x->v[0].v + 1;
    if (x->distinct <= FEW_CODES) return "of few values";
    return range >= 2 * (double)x->distinct ? "that repeat, with gaps between them" : NULL;
}

static void decide_kind(struct drps_column *c, struct seen *s, const struct numbers *x)
{
    c->guessed = 1;
    s->as = codes(s, x, c->name);
    if (s->other_line || (s->dates && s->numbers))
        c->kind = DRPS_COLUMN_CATEGORY;
    else if (s->dates)
        c->kind = DRPS_COLUMN_DATE;
    else
        c->kind = s->numbers && !s->as ? DRPS_COLUMN_NUMBER : DRPS_COLUMN_CATEGORY;
}

static void set_linear(struct drps_column *c, double shift, double unit)
{
    const float u = (float)unit, s = (float)shift;
    c->scale = DRPS_SCALE_LINEAR;
    c->unit = isfinite(u) && u > 0 ? u : 1;
    c->shift = isfinite(s) ? s : 0;
}

static void learn_standard(struct drps_column *c, const struct drps_numbers *x)
{
    set_linear(c, x->mean, sqrt(drps_numbers_variance_about(x, x->mean)));
}

static void learn_robust(struct drps_column *c, const struct drps_numbers *x)
{
    const size_t n = x->drawn_n;
    const double middle = n ? (double)x->drawn[n / 2] : 0;
    const double quarters = n ? (double)x->drawn[3 * n / 4] - (double)x->drawn[n / 4] : 0;
    set_linear(c, middle, quarters > 0 ? quarters : sqrt(drps_numbers_variance_about(x, middle)));
}

/* Numbers that are not large stay as they are; where most are 0, they stay 0. */
static void learn_auto(struct drps_column *c, const struct drps_numbers *x)
{
    const double size = sqrt(drps_numbers_variance_about(x, 0));
    if (x->n < FEW_VALUES || size <= LARGE)
        c->scale = DRPS_SCALE_NONE;
    else if (2 * x->zeros > x->n)
        set_linear(c, 0, size);
    else
        learn_standard(c, x);
}

static void learn_scale(struct drps_column *c, const struct drps_numbers *x)
{
    if (c->final && c->scale == DRPS_SCALE_AUTO) c->scale = DRPS_SCALE_NONE;
    if (c->scale == DRPS_SCALE_AUTO) learn_auto(c, x);
    if (c->scale == DRPS_SCALE_STANDARD) learn_standard(c, x);
    if (c->scale == DRPS_SCALE_ROBUST) learn_robust(c, x);
}

/* Cuts between bins of about equally many numbers; equal numbers are in one bin. */
static int learn_bins(struct drps_column *c, const struct drps_numbers *x, struct drps_err *err)
{
    float cuts[DRPS_COLUMN_BINS_MOST];
    size_t n = 0;
    for (uint32_t k = 1; k < c->bins && x->drawn_n; k++) {
        const float cut = x->drawn[x->drawn_n * k / c->bins];
        if (cut > (n ? cuts[n - 1] : x->drawn[0])) cuts[n++] = cut;
    }
    return drps_column_set_cuts(c, cuts, n, err);
}

static int learn_all(struct drps_first_lines *f, struct drps_columns *c, struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->n; i++) {
        struct drps_column *column = &c->columns[i];
        drps_numbers_sort(&f->all[i]);
        if (column->kind == DRPS_COLUMN_NUMBER) learn_scale(column, &f->all[i]);
        if (column->kind == DRPS_COLUMN_BINS && column->bins)
            rc = learn_bins(column, &f->all[i], err);
    }
    return rc;
}

/* ---- All lines ---- */

/* Returns whether quartiles or bins are to be learned of the column. */
static int wants_sample(const struct drps_column *c)
{
    return is_open(c) && (c->kind == DRPS_COLUMN_BINS || c->scale == DRPS_SCALE_ROBUST);
}

static int open_numbers(struct drps_first_lines *f, const struct drps_columns *c,
                        struct drps_err *err)
{
    size_t samples = 0;
    f->all = calloc(f->columns + 1, sizeof(*f->all));
    if (!f->all) return drps_err_set(err, -ENOMEM, "the numbers of %zu columns", f->columns);
    for (size_t i = 0; i < c->n; i++)
        samples += (size_t)wants_sample(&c->columns[i]);
    const uint64_t room = f->r->options.memory_bytes / SAMPLES_SHARE;
    const size_t most = drps_numbers_most(samples, room);
    if (!most)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "quartiles or bins of %zu columns need %zu KiB of the reader's memory, "
                            "%llu KiB are for them: learn at most %llu columns so, or give more "
                            "memory",
                            samples, (samples * DRPS_NUMBERS_LEAST_BYTES >> 10) + 1,
                            (unsigned long long)room >> 10,
                            (unsigned long long)room / DRPS_NUMBERS_LEAST_BYTES);
    for (size_t i = 0; i < c->n; i++)
        if (wants_sample(&c->columns[i])) f->all[i].most = most;
    return 0;
}

static int some_open(const struct drps_columns *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (is_open(&c->columns[i])) return 1;
    return 0;
}

/* Count the numbers that are to be learned from. A pipe has had its first lines when all would have
 * to be read. */
static int count_all(struct drps_first_lines *f, struct drps_reader *r,
                     const struct drps_columns *c, int are_all, drps_take_line take, void *ctx,
                     struct drps_err *err)
{
    int rc = open_numbers(f, c, err);
    if (rc < 0 || !some_open(c)) return rc;
    if (are_all || r->read_once)
        return drps_lines_first(&r->chunks, c->header_line, take, ctx, &are_all, err);
    drps_log(r->options.log, DRPS_LOG_INFO, "all lines are looked at for scales and bins");
    return drps_lines_all(&r->chunks, c->header_line > 0, 1 + r->input_bytes / COUNTED_BYTES, take,
                          ctx, err);
}

/* Learns from lines that are judged as when they are read; reading begins anew after it. */
static int learn_lines(struct drps_first_lines *f, struct drps_reader *r, struct drps_columns *c,
                       int are_all, drps_take_line take, void *ctx, struct drps_err *err)
{
    const enum drps_reader_labels labels = r->options.labels;
    const int words = c->label_words;
    f->r = r;
    f->n = 0;
    const int rc = count_all(f, r, c, are_all, take, ctx, err);
    r->options.labels = labels;
    c->label_words = words;
    return rc;
}

/* ---- Telling ---- */

static void explain(const struct drps_column *c, const struct seen *s, char *why, size_t n)
{
    if (c->guessed && s->other_line)
        (void)snprintf(why, n, "'%s' in line %llu is no number", s->other,
                       (unsigned long long)s->other_line);
    else if (c->guessed && s->dates)
        (void)snprintf(why, n, "%llu dates, %llu numbers, %llu missing, in the first lines",
                       (unsigned long long)s->dates, (unsigned long long)s->numbers,
                       (unsigned long long)s->missing);
    else if (c->guessed && s->as)
        (void)snprintf(why, n, "whole numbers %s", s->as);
    else if (c->guessed && s->numbers)
        (void)snprintf(why, n, "%llu numbers, %llu missing, in the first lines",
                       (unsigned long long)s->numbers, (unsigned long long)s->missing);
    else if (c->guessed)
        (void)snprintf(why, n, "nothing in the first lines");
    else if (s->pair)
        (void)snprintf(why, n, "%s; %s is 1, the positive class, and %s is 0",
                       c->given ? "as given" : "by its name", drps_columns_pair_word(s->pair, 1),
                       drps_columns_pair_word(s->pair, 0));
    else
        (void)snprintf(why, n, c->given ? "as given" : "by its name");
}

/* Warns of numbers with decimal commas, which are read as words. */
static void warn_of_commas(const struct drps_first_lines *f, const struct drps_reader *r,
                           const struct drps_columns *c)
{
    const struct seen *first = NULL;
    const char *name = NULL;
    char others[48] = "";
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct seen *s = &f->seen[i];
        if (!c->columns[i].guessed || !s->commas || s->commas < s->others) continue;
        if (!n++) {
            first = s;
            name = c->columns[i].name;
        }
    }
    if (!n) return;
    if (n > 1)
        (void)snprintf(others, sizeof(others), ", and %zu more column%s,", n - 1, n > 2 ? "s" : "");
    drps_log(r->options.log, DRPS_LOG_WARN,
             "numbers of column %.100s%s have decimal commas ('%s' in line %llu) and are taken for "
             "words: write them with points, or say that they are categories",
             name, others, first->other, (unsigned long long)first->other_line);
}

/* Whether a column is one of numbers but for one value of ten, or fewer. Codes would be categories
 * without these, too, and decimal commas are told by themselves. */
static int nearly_numbers(const struct drps_column *c, const struct seen *s)
{
    const uint64_t values = s->numbers + s->dates + s->others;
    if (!c->guessed || !s->others || s->as || (s->commas && s->commas >= s->others)) return 0;
    return values >= ENOUGH_VALUES && 10 * s->numbers >= 9 * values;
}

static void warn_of_few_words(const struct drps_first_lines *f, const struct drps_reader *r,
                              const struct drps_columns *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct seen *s = &f->seen[i];
        const char *name = c->columns[i].name;
        if (!nearly_numbers(&c->columns[i], s)) continue;
        drps_log(r->options.log, DRPS_LOG_WARN,
                 "column %.100s is taken for categories, as '%s' in line %llu is no number, but "
                 "%llu of %llu values in the first lines are: if it is meant to have numbers, give "
                 "the kind %.100s:number, and such lines are bad; else %.100s:category",
                 name, s->other, (unsigned long long)s->other_line, (unsigned long long)s->numbers,
                 (unsigned long long)(s->numbers + s->dates + s->others), name, name);
    }
}

static int tell(const struct drps_first_lines *f, const struct drps_reader *r,
                const struct drps_columns *c, struct drps_err *err)
{
    warn_of_commas(f, r, c);
    warn_of_few_words(f, r, c);
    if (!r->options.on_columns) return 0;
    const size_t n = c->n + c->n_crosses;
    struct drps_reader_column *told = calloc(n + 1, sizeof(*told));
    if (!told) return drps_err_set(err, -ENOMEM, "csv columns");
    for (size_t i = 0; i < c->n; i++) {
        const struct drps_column *column = &c->columns[i];
        told[i].name = column->name;
        told[i].kind = (enum drps_column_kind)column->kind;
        told[i].guessed_codes = column->guessed && f->seen[i].as != NULL;
        told[i].scaled = column->kind == DRPS_COLUMN_NUMBER && column->scale != DRPS_SCALE_NONE;
        explain(column, &f->seen[i], told[i].why, sizeof(told[i].why));
    }
    for (size_t i = 0; i < c->n_crosses; i++)
        told[c->n + i] = (struct drps_reader_column){
            .name = c->crosses[i].name, .kind = DRPS_COLUMN_CROSS, .why = "as given"};
    r->options.on_columns(r->options.columns_ctx, told, n);
    free(told);
    return 0;
}

static void decide_kinds(struct drps_first_lines *f, struct drps_columns *c)
{
    size_t at = 0;
    if (f->n) qsort(f->values, f->n, sizeof(*f->values), compare_values);
    for (size_t i = 0; i < c->n; i++) {
        const struct numbers x = take_numbers(f, i, &at);
        if (c->columns[i].kind == -1) decide_kind(&c->columns[i], &f->seen[i], &x);
    }
}

/* Returns whether something was learned of the column. */
static int is_learned(const struct drps_column *c, const struct drps_numbers *x)
{
    return x->n && (c->kind == DRPS_COLUMN_BINS || c->scale == DRPS_SCALE_LINEAR);
}

static void warn_of_pipe(const struct drps_first_lines *f, const struct drps_reader *r,
                         const struct drps_columns *c)
{
    for (size_t i = 0; i < c->n; i++) {
        if (!is_learned(&c->columns[i], &f->all[i])) continue;
        drps_log(
            r->options.log, DRPS_LOG_WARN,
            "a pipe is read only once: scales and bins, such as that of column %.100s, come from "
            "its first lines alone; with a file they come from all lines",
            c->columns[i].name);
        return;
    }
}

int drps_first_lines_learn(struct drps_first_lines *f, struct drps_reader *r,
                           struct drps_columns *c, drps_take_line take, void *ctx,
                           struct drps_err *err)
{
    int are_all = 1, rc = 0;
    if (wanted(c)) rc = drps_lines_first(&r->chunks, c->header_line, take, ctx, &are_all, err);
    if (rc == 0) rc = reserve(f, c->n, err);
    if (rc == 0) decide_kinds(f, c);
    if (rc == 0) rc = learn_lines(f, r, c, are_all, take, ctx, err);
    if (rc == 0) rc = learn_all(f, c, err);
    if (rc == 0 && !are_all && r->read_once) warn_of_pipe(f, r, c);
    return rc < 0 ? rc : tell(f, r, c, err);
}
