/* What the formats share: keys of names, faults, excerpts, and the end of a sample, where features
 * that a sample has twice are merged. */
/* XXH3 is inlined: names are short, and a call would cost as much as the hash. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "index/reader/drps_parse.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/drps_rng.h"

int drps_parse_bad(struct drps_parse *ps, const char *at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(ps->bad_why, sizeof(ps->bad_why), fmt, ap); /* a cut reason is still a reason */
    va_end(ap);
    ps->bad_at = at;
    return DRPS_PARSE_BAD;
}

int drps_parse_bad_number(struct drps_parse *ps, const char *at, const char *what)
{
    return drps_parse_bad(ps, at, "%s %s", what, drps_number_why(at));
}

int drps_parse_class(const struct drps_reader *r, struct drps_parse *ps, const char *p,
                     const char *end, float *label_out)
{
    if (r->options.label_ignored) return 0;
    while (p < end && drps_is_blank(*p))
        p++;
    while (p < end && drps_is_blank(end[-1]))
        end--;
    const size_t n = (size_t)(end - p);
    const struct drps_classes *known = r->options.known_classes;
    const int32_t number =
        known ? drps_classes_find(known, p, n) : drps_classes_add(r->options.classes, p, n);
    *label_out = (float)number; /* exact: there are fewer than 2^24 */
    if (known || number >= 0) return 0;
    ps->bad_fatal = number == DRPS_CLASS_MANY || number == DRPS_CLASS_MEMORY;
    return drps_parse_bad(ps, p, "label %s", drps_class_fault(number));
}

int drps_parse_names(struct drps_reader *r, int number)
{
    if (!drps_reads_classes(&r->options)) return 0;
    if (r->options.labels == DRPS_READER_AS_FIRST)
        r->options.labels = number ? DRPS_READER_NUMBERS : DRPS_READER_NAMES;
    return r->options.labels == DRPS_READER_NAMES;
}

static const char *pass_word(const char *p, const char *end)
{
    while (p < end && !drps_is_blank(*p))
        p++;
    return p;
}

/* Pass over the word that stands where a label does. A feature's number and colon are none. */
static const char *pass_ignored(const char *p, const char *end)
{
    const char *digits = p + (*p == '-');
    const size_t n = strspn(digits, "0123456789");
    return n && digits[n] == ':' ? p : pass_word(p, end);
}

static const char *pass_class(struct drps_parse *ps, const char *p, const char *end)
{
    const char *stop = pass_word(p, end);
    const size_t n = (size_t)(stop - p);
    if (memchr(p, ':', n))
        (void)drps_parse_bad(ps, p, "label has a colon in it: is it missing, and this a feature?");
    else if (memchr(p, ',', n))
        (void)drps_parse_bad(ps, p,
                             "label has a comma in it: several labels of a sample are not "
                             "supported, and a name may have commas in csv alone");
    else
        return stop;
    return NULL;
}

const char *drps_parse_first_label(struct drps_reader *r, struct drps_parse *ps, const char *p,
                                   const char *end, float *label_out)
{
    const char *q = drps_number_float(p, label_out);
    const int number = q && (q == end || drps_is_blank(*q) || *q == '#');
    if (r->options.label_ignored) {
        *label_out = 0;
        return number && !drps_reads_classes(&r->options) ? q : pass_ignored(p, end);
    }
    if (drps_parse_names(r, number)) return pass_class(ps, p, end);
    if (number) return q;
    if (drps_reads_classes(&r->options))
        (void)drps_parse_bad(ps, p, "label %s, and the first label is one", drps_number_why(p));
    else
        (void)drps_parse_bad_number(ps, p, "label");
    return NULL;
}

/* A sample's features; names and fields are NULL where they have none. */
struct features {
    uint64_t *keys;
    float *values;
    struct drps_name *names;
    uint16_t *fields;
};

/* Feature i before feature j: by key, then by field. */
static int before(const struct features *f, size_t i, size_t j)
{
    if (f->keys[i] != f->keys[j]) return f->keys[i] < f->keys[j];
    return f->fields && f->fields[i] < f->fields[j];
}

static void move(const struct features *f, size_t to, size_t from)
{
    f->keys[to] = f->keys[from];
    f->values[to] = f->values[from];
    if (f->names) f->names[to] = f->names[from];
    if (f->fields) f->fields[to] = f->fields[from];
}

static void swap(const struct features *f, size_t a, size_t b)
{
    const uint64_t key = f->keys[a];
    const float value = f->values[a];
    const struct drps_name name = f->names ? f->names[a] : (struct drps_name){.text = NULL};
    const uint16_t field = f->fields ? f->fields[a] : 0;
    move(f, a, b);
    f->keys[b] = key;
    f->values[b] = value;
    if (f->names) f->names[b] = name;
    if (f->fields) f->fields[b] = field;
}

/*
 * Sort features by their keys by heap sort, in place and never slowly, for the rare sample that is
 * not in order.
 */
static void sift(const struct features *f, size_t i, size_t n)
{
    for (size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && before(f, child, child + 1)) child++;
        if (!before(f, i, child)) break;
        swap(f, i, child);
        i = child;
    }
}

static void sort(const struct features *f, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift(f, i, n);
    for (size_t end = n; end-- > 1;) {
        swap(f, 0, end);
        sift(f, 0, end);
    }
}

enum { TABLE_ENTRIES = 1024 }; /* for samples of up to half as many features */

/* Returns 1 if a key occurs twice; n <= TABLE_ENTRIES / 2. */
static int has_duplicate(const uint64_t *keys, size_t n)
{
    uint16_t entries[TABLE_ENTRIES]; /* 1 + index of the key in this entry */
    size_t mask = 15;

    while (mask + 1 < 2 * n)
        mask = 2 * mask + 1;
    memset(entries, 0, (mask + 1) * sizeof(entries[0]));
    for (size_t i = 0; i < n; i++) {
        size_t at = (keys[i] * 0x9e3779b97f4a7c15u) >> 54 & mask;
        for (; entries[at]; at = (at + 1) & mask)
            if (keys[entries[at] - 1] == keys[i]) return 1;
        entries[at] = (uint16_t)(i + 1);
    }
    return 0;
}

/*
 * Add up the values of equal keys, and fields, sorted; a sum of 0 leaves the feature out. Returns
 * how many are left.
 */
static size_t merge(const struct features *f, size_t n, int *finite)
{
    size_t kept = 0;

    *finite = 1;
    for (size_t i = 0; i < n;) {
        const size_t first = i;
        double sum = 0; /* so that the order, which the sort does not keep, hardly matters */
        for (; i < n && !before(f, first, i); i++)
            sum += (double)f->values[i];
        const float value = (float)sum;
        *finite &= isfinite(value) != 0;
        move(f, kept, first);
        f->values[kept] = value;
        kept += value != 0;
    }
    return kept;
}

int drps_parse_sample(struct drps_parse *ps, float label, int check)
{
    struct drps_samples *s = ps->out;
    size_t first = s->starts[s->n], n = ps->nnz - first;
    const struct features f = {s->keys + first, s->values + first,
                               s->names ? s->names + first : NULL,
                               s->fields ? s->fields + first : NULL};

    for (size_t j = 0; f.fields && f.names && j < n; j++)
        f.fields[j] = (uint16_t)f.names[j].field;
    if (check && (n > TABLE_ENTRIES / 2 || has_duplicate(f.keys, n))) {
        int finite;
        sort(&f, n);
        ps->nnz = first + merge(&f, n, &finite);
        if (!finite)
            return drps_parse_bad(ps, NULL, "the values of a repeated feature add up to infinity");
    }
    ps->ended++;
    if (s->weights && ps->weight == 0 && !ps->keep_weightless) {
        ps->weightless++;
        ps->nnz = first;
        return 0;
    }
    if (s->weights) s->weights[s->n] = ps->weight;
    s->lines[s->n] = ps->line;
    s->labels[s->n++] = label;
    s->starts[s->n] = ps->nnz;
    return 0;
}

void drps_name_hash(uint32_t field, const char *text, size_t bytes, uint64_t seed,
                    uint64_t *key_out, uint32_t *check_out)
{
    /* The field goes into the seed, so that "7" of one column is not "7" of another. */
    XXH128_hash_t h = XXH3_128bits_withSeed(text, bytes, drps_rng_at(seed, field));
    *key_out = h.low64;
    *check_out = (uint32_t)(h.high64 >> 32);
}

int drps_all_ones(const float *values, size_t n)
{
    int other = 0;
    for (size_t i = 0; i < n; i++)
        other |= values[i] != 1.0f;
    return !other;
}
