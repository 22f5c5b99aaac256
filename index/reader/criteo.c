/*
 * Criteo display ads (Kaggle and the terabyte logs): label, 13 integers, 26 categories, tab
 * separated, no header. Every column gives one feature of value 1:
 *
 *   integer up to 2    the integer, as "I3=-1"
 *   larger integer v   a bucket, "I3=L7" where 7 = floor(ln(v)^2); the L tells it from the integer
 *   category           its text, as "C7=68fd1e64"
 *   empty              a value of its own, "I3=" or "C7="
 */
#include "index/reader/drps_parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { INTEGERS = 13, CATEGORIES = 26, FIELDS = INTEGERS + CATEGORIES };

static const char *const field_names[FIELDS] = {
    "I1",  "I2",  "I3",  "I4",  "I5",  "I6",  "I7",  "I8",  "I9",  "I10", "I11", "I12", "I13",
    "C1",  "C2",  "C3",  "C4",  "C5",  "C6",  "C7",  "C8",  "C9",  "C10", "C11", "C12", "C13",
    "C14", "C15", "C16", "C17", "C18", "C19", "C20", "C21", "C22", "C23", "C24", "C25", "C26"};

static int criteo_open(struct drps_reader *r, const char *head, size_t n, struct drps_err *err)
{
    (void)head;
    (void)n;
    r->fields = malloc(sizeof(field_names));
    if (!r->fields) return drps_err_set(err, -ENOMEM, "criteo reader");
    memcpy(r->fields, field_names, sizeof(field_names));
    r->n_fields = FIELDS;
    return 0;
}

static size_t criteo_bound(const struct drps_reader *r, const char *text, size_t n, size_t lines)
{
    (void)r;
    (void)text;
    size_t most = lines * FIELDS;
    return most < n ? most : n; /* each feature has a tab of its own */
}

/* Write v <= 2 without "+", leading zeros or "-0", within its own characters. */
static char *canonical(char *p, const char *end, int negative, uint64_t v)
{
    while (p + 1 < end && (*p == '0' || *p == '+' || *p == '-'))
        p++;
    if (negative && v != 0) *--p = '-';
    return p;
}

/*
 * Write the bucket of v > 2 over the number and return its end. The tab behind has been passed, so
 * there is room for one character more: enough, as the square of the logarithm of n digits has at
 * most n of them.
 */
static char *write_bucket(char *p, uint64_t v)
{
    double ln = log((double)v);
    unsigned bucket = (unsigned)(ln * ln); /* at most 1906: v < 2^63 */

    *p++ = 'L';
    if (bucket >= 1000) *p++ = (char)('0' + bucket / 1000);
    if (bucket >= 100) *p++ = (char)('0' + bucket / 100 % 10);
    if (bucket >= 10) *p++ = (char)('0' + bucket / 10 % 10);
    *p++ = (char)('0' + bucket % 10);
    return p;
}

/* Add the integer column at p; `end` is the tab behind it. */
static int add_integer(struct drps_parse *ps, uint32_t field, char *p, char *end)
{
    int negative = *p == '-';
    char *digits = p + (*p == '-' || *p == '+');
    uint64_t v;

    if (p == end) {
        drps_parse_name(ps, field, p, 0, 1);
        return 0;
    }
    const char *q = drps_number_u64(digits, &v);
    if (q == digits || (q && q != end))
        return drps_parse_bad(ps, p, "%s is not an integer", field_names[field]);
    if (!q || v > INT64_MAX)
        return drps_parse_bad(ps, p, "%s is beyond 2^63 - 1", field_names[field]);
    if (!negative && v > 2)
        end = write_bucket(p, v);
    else
        p = canonical(p, end, negative, v);
    drps_parse_name(ps, field, p, (size_t)(end - p), 1);
    return 0;
}

static int bad_columns(struct drps_parse *ps, size_t n)
{
    return drps_parse_bad(
        ps, NULL, "%zu tab-separated columns, expected label + 13 integers + 26 categories", n);
}

/* Read the label. Returns what follows it, or NULL after naming the fault. */
static const char *take_label(const struct drps_reader *r, struct drps_parse *ps, const char *p,
                              const char *end, float *label)
{
    if (r->options.label_ignored) {
        while (p < end && *p != '\t')
            p++;
        return p;
    }
    const char *q = drps_number_float(p, label);
    if (q && (*q == '\t' || q == end)) return q;
    (void)drps_parse_bad_number(ps, p, "label");
    return NULL;
}

static int criteo_line(struct drps_reader *r, struct drps_parse *ps, char *p, char *end)
{
    float label = 0;

    if (drps_skip_blanks(p) >= end) return 0;
    const char *q = take_label(r, ps, p, end, &label);
    if (!q) return DRPS_PARSE_BAD;
    p += q - p;
    for (uint32_t field = 0; field < FIELDS; field++) {
        if (p >= end) return bad_columns(ps, field + 1);
        char *start = ++p; /* behind the tab */
        while (*p != '\t' && p < end)
            p++;
        if (field >= INTEGERS) {
            drps_parse_name(ps, field, start, (size_t)(p - start), 1);
        } else {
            if (p == end) return bad_columns(ps, field + 2);
            if (add_integer(ps, field, start, p) < 0) return DRPS_PARSE_BAD;
        }
    }
    if (p < end) return bad_columns(ps, 1 + FIELDS + drps_text_count(p, (size_t)(end - p), '\t'));
    return drps_parse_sample(ps, label, 0);
}

const struct drps_format drps_format_criteo = {
    .name = "criteo",
    .has_names = 1,
    .has_fields = 1,
    .open = criteo_open,
    .bound = criteo_bound,
    .line = criteo_line,
};
