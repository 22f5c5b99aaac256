/* All formats, by name and by the first block of the input. */
#include <string.h>

#include "index/reader/open/open.h"

#define POINTER(name) &drps_format_##name,
#define NAME(name) #name,
#define LISTED(name) ", " #name

static const struct drps_format *const formats[] = {DRPS_FORMATS(POINTER) NULL};

const char *const *drps_reader_formats(void)
{
    static const char *const names[] = {DRPS_FORMATS(NAME) NULL};
    return names;
}

const char *drps_reader_format_list(void)
{
    static const char list[] = DRPS_FORMATS(LISTED);
    return list + 2;
}

const struct drps_format *drps_reader_find_format(const char *name)
{
    for (size_t i = 0; formats[i]; i++)
        if (strcmp(formats[i]->name, name) == 0) return formats[i];
    return NULL;
}

/* Returns what the first block looks like, or NULL; with `named` labels may be names. */
static const struct drps_format *detect(const struct drps_reader *r, int named)
{
    const struct drps_chunks *c = &r->chunks;
    const char *label = r->options.clicks ? r->options.clicks : r->options.csv_label;
    return drps_format_detect(c->carry, c->carry_n, c->in.ended, label,
                              drps_reader_says_columns(&r->options), named);
}

/* A fourth column that is said to be the weight tells ratings, whatever its numbers are. */
static int are_weighted_ratings(const struct drps_reader_options *o)
{
    return o->weight && strcmp(o->weight, "4") == 0 && !o->clicks && !o->csv_label;
}

/* Where no format fits, returns the one whose parser can tell what is wrong, or NULL. */
static const struct drps_format *likely(const struct drps_reader *r)
{
    const struct drps_chunks *c = &r->chunks;
    if (drps_format_looks_headless(c->carry, c->carry_n, c->in.ended)) return NULL;
    const struct drps_format *f = drps_format_likely(c->carry, c->carry_n, c->in.ended, 0);
    return f || detect(r, 1) ? f : drps_format_likely(c->carry, c->carry_n, c->in.ended, 1);
}

/* Tells the first line that has something, and what it looks like. */
static int tell_unknown(const struct drps_reader *r, struct drps_err *err)
{
    const struct drps_chunks *c = &r->chunks;
    const char *p = c->carry, *end = c->carry + c->carry_n;
    char text[100] = "";
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
    const struct drps_format *named = detect(r, 1);
    if (named)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "%s: looks like %s whose labels are names: '%s'; here labels are "
                            "numbers: names are for the algorithm mlr, for svm, and for nets that "
                            "end in `full classes`",
                            c->in.name, named->name, text);
    return drps_err_set(err, DRPS_E_FORMAT,
                        "%s: no format fits the first lines: '%s'; name one of %s", c->in.name,
                        text, drps_reader_format_list());
}

int drps_reader_detect_format(struct drps_reader *r, struct drps_err *err)
{
    const int names = drps_reads_classes(&r->options);
    if (r->options.csv_header == DRPS_CSV_NO_HEADER) r->format = &drps_format_csv;
    if (!r->format && (!names || r->options.labels != DRPS_READER_NAMES)) r->format = detect(r, 0);
    if (!r->format && names) r->format = detect(r, 1);
    if (!r->format && are_weighted_ratings(&r->options)) r->format = &drps_format_ratings;
    if (!r->format) r->format = likely(r);
    return r->format ? 0 : tell_unknown(r, err);
}
