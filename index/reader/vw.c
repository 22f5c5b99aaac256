/*
 * Vowpal Wabbit's text: "[label [weight [base]]] [tag]|namespace[:scale] feature[:value] ... |...".
 *
 * A feature is called "namespace^feature"; one without a namespace has its own name, and one
 * without a name is called by its place among those of its namespace, from 0. Drops tags. The text
 * before the first bar is the tag alone where no blank stands before the bar, as in Vowpal Wabbit
 * itself.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "index/reader/drps_parse.h"

enum { NUMBER_CHARS = 12 };

static int vw_open(struct drps_reader *r, const char *head, size_t n, struct drps_err *err)
{
    (void)head;
    (void)n;
    r->fields = malloc(sizeof(*r->fields));
    if (!r->fields) return drps_err_set(err, -ENOMEM, "field names");
    r->fields[0] = "feature";
    r->n_fields = 1;
    return 0;
}

static int ends_token(char c)
{
    return drps_is_blank(c) || c == '|';
}

/* A feature stands behind a blank or a bar. */
static size_t vw_bound(const struct drps_reader *r, const char *text, size_t n, size_t lines)
{
    (void)r;
    return drps_text_count(text, n, ' ') + drps_text_count(text, n, '\t') +
           drps_text_count(text, n, '|') + lines;
}

/* The names of features, each behind the name of its namespace and two bytes at most, or a number.
 */
static size_t vw_made(const struct drps_reader *r, const char *text, size_t n, size_t lines)
{
    const char *end = text + n;
    size_t sum = n + (2 + NUMBER_CHARS) * vw_bound(r, text, n, lines);
    for (const char *bar = memchr(text, '|', n); bar;) {
        const char *name = bar + 1, *p = name;
        while (p < end && *p != '\n' && !ends_token(*p))
            p++;
        const size_t bytes = (size_t)(p - name);
        for (; p < end && *p != '\n' && *p != '|'; p++)
            sum += drps_is_blank(*p) ? bytes : 0;
        bar = p < end ? memchr(p, '|', (size_t)(end - p)) : NULL;
    }
    return sum;
}

/* ---- Before the first bar ---- */

enum { WORDS = 4 }; /* label, weight, base, tag */

struct word {
    const char *p, *end;
};

/* Split the text into words; more than there can be are WORDS + 1. */
static size_t split(const char *p, const char *end, struct word *words)
{
    size_t n = 0;
    for (;;) {
        while (p < end && drps_is_blank(*p))
            p++;
        if (p == end) return n;
        if (n == WORDS) return WORDS + 1;
        words[n].p = p;
        while (p < end && !drps_is_blank(*p))
            p++;
        words[n++].end = p;
    }
}

static int read_number(struct drps_parse *ps, const struct word *word, const char *what,
                       float *v_out)
{
    const char *q = drps_number_float(word->p, v_out);
    if (q == word->end) return 0;
    if (q && q < word->end && *q == ':')
        return drps_parse_bad(ps, word->p,
                              "%s has a colon in it: labels with costs, probabilities or several "
                              "parts are not supported",
                              what);
    return drps_parse_bad_number(ps, word->p, what);
}

static int read_label(struct drps_reader *r, struct drps_parse *ps, const struct word *word,
                      int *named, float *label)
{
    const char *q = drps_number_float(word->p, label);
    *named = drps_parse_names(r, q == word->end);
    return *named ? 0 : read_number(ps, word, "label", label);
}

/* The weight counts; a base would change what training does, and is not passed over. */
static int take_weight(const struct drps_reader *r, struct drps_parse *ps, const struct word *words,
                       size_t n)
{
    float v = 1;
    if (n > 1 && read_number(ps, &words[1], "weight", &v) < 0) return DRPS_PARSE_BAD;
    if (v < 0) return drps_parse_bad(ps, words[1].p, "weight is negative");
    if (v != 1 && r->options.weights_n)
        return drps_parse_bad(ps, words[1].p,
                              "weights are here, and in a file beside the data, too");
    if (n > 1 && !r->options.weights_n) ps->weight = v;
    v = 0;
    if (n > 2 && read_number(ps, &words[2], "base", &v) < 0) return DRPS_PARSE_BAD;
    if (v != 0) return drps_parse_bad(ps, words[2].p, "a base of the prediction is not supported");
    return 0;
}

/* What stands before the bar. The label's word is empty where there is none. */
static int take_head(struct drps_reader *r, struct drps_parse *ps, const char *p, const char *bar,
                     struct word *label_word, int *named, float *label)
{
    struct word words[WORDS] = {{p, p}};
    size_t n = split(p, bar, words);
    *named = 0;
    *label_word = (struct word){p, p};
    if (n > WORDS)
        return drps_parse_bad(ps, p, "more than label, weight, base and tag before the first '|'");
    if (n && (words[n - 1].end == bar || *words[n - 1].p == '\'')) n--;
    if (n == WORDS) return drps_parse_bad(ps, words[WORDS - 1].p, "the tag is followed by a blank");
    if (n == 0)
        return r->options.label_optional ? 0 : drps_parse_bad(ps, NULL, "the line has no label");
    *label_word = words[0];
    const int rc = r->options.label_ignored ? 0 : read_label(r, ps, &words[0], named, label);
    return rc < 0 ? rc : take_weight(r, ps, words, n);
}

/* ---- Features ---- */

struct space {
    const char *name, *end; /* empty: the namespace without a name */
    float scale;
    unsigned nameless; /* features without a name so far: they are called by their number */
};

/* Take "name" or "name:scale" behind the bar at p. Returns what follows, or NULL. */
static char *take_space(struct drps_parse *ps, char *p, const char *end, struct space *out)
{
    out->name = ++p;
    while (p < end && !ends_token(*p) && *p != ':')
        p++;
    out->end = p;
    out->scale = 1;
    out->nameless = 0;
    if (p == end || *p != ':') return p;
    const char *q = drps_number_float(++p, &out->scale);
    if (q && q <= end && (q == end || ends_token(*q))) return p + (q - p);
    (void)drps_parse_bad_number(ps, p, "the namespace's scale");
    return NULL;
}

static void add_feature(struct drps_parse *ps, const struct space *space, const char *name,
                        size_t bytes, float value)
{
    const size_t space_bytes = (size_t)(space->end - space->name);
    char *to = ps->made, *text = to;
    if (space_bytes) memcpy(to, space->name, space_bytes);
    to += space_bytes;
    if (space_bytes || memchr(name, '^', bytes)) *to++ = '^';
    memcpy(to, name, bytes);
    ps->made = to + bytes;
    drps_parse_name(ps, 0, text, (size_t)(ps->made - text), value);
}

/* Take "name" or "name:value" at p. Returns what follows, or NULL. */
static char *take_feature(struct drps_parse *ps, char *p, const char *end, struct space *space)
{
    const char *name = p, *start = p;
    char number[NUMBER_CHARS];
    float value = 1;
    while (p < end && !ends_token(*p) && *p != ':')
        p++;
    size_t bytes = (size_t)(p - name);
    if (p < end && *p == ':') {
        const char *q = drps_number_float(++p, &value);
        if (!q || q > end || (q < end && !ends_token(*q))) {
            (void)drps_parse_bad_number(ps, p, "value");
            return NULL;
        }
        p += q - p;
    }
    if (!bytes) {
        bytes = (size_t)snprintf(number, sizeof(number), "%u", space->nameless++);
        name = number;
    }
    value *= space->scale;
    if (!isfinite(value)) {
        (void)drps_parse_bad(ps, start, "value and the namespace's scale give infinity");
        return NULL;
    }
    if (value != 0) add_feature(ps, space, name, bytes, value);
    return p;
}

static int take_features(struct drps_parse *ps, char *p, const char *end)
{
    struct space space;
    while (p < end) {
        if (drps_is_blank(*p)) {
            p++;
            continue;
        }
        p = *p == '|' ? take_space(ps, p, end, &space) : take_feature(ps, p, end, &space);
        if (!p) return DRPS_PARSE_BAD;
    }
    return 0;
}

static int vw_line(struct drps_reader *r, struct drps_parse *ps, char *p, char *end)
{
    struct word label_word;
    float label = 0;
    int named;
    if (drps_skip_blanks(p) >= end) return 0;
    char *bar = memchr(p, '|', (size_t)(end - p));
    if (!bar) return drps_parse_bad(ps, NULL, "the line has no '|', behind which features stand");
    if (take_head(r, ps, p, bar, &label_word, &named, &label) < 0) return DRPS_PARSE_BAD;
    if (take_features(ps, bar, end) < 0) return DRPS_PARSE_BAD;
    if (drps_reads_classes(&r->options) && label_word.p < label_word.end &&
        drps_parse_class(r, ps, label_word.p, label_word.end, &label) < 0)
        return DRPS_PARSE_BAD;
    return drps_parse_sample(ps, label, 1);
}

const struct drps_format drps_format_vw = {.name = "vw",
                                           .has_names = 1,
                                           .has_classes = 1,
                                           .open = vw_open,
                                           .bound = vw_bound,
                                           .made = vw_made,
                                           .line = vw_line};
