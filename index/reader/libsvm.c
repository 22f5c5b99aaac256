/*
 * LIBSVM, SVMlight and libFM text: "label [qid:N] id:value id:value ... [# comment]".
 *
 * Most lines have plain entries alone, which are taken by vectors (text/entries.c). What is not
 * plain ends that: from there on the line is read number by number, where the commonest entry, a
 * short id with a one-digit value, takes two loads and one well predicted branch.
 */
#include "index/reader/drps_parse.h"
#include "index/reader/text/drps_entries.h"

static size_t libsvm_bound(const struct drps_reader *r, const char *text, size_t n, size_t lines)
{
    (void)r;
    (void)lines;
    return drps_text_count(text, n, ':');
}

/* Returns 1 if a token may end here: at a blank, a comment, or the end of the line. */
static int ends_token(const char *p, const char *end)
{
    return p == end || drps_is_blank(*p) || *p == '#';
}

/*
 * Skip the query id of ranking data, which drps does not use. Returns its end, or NULL when there
 * is none.
 */
static char *skip_qid(char *p, const char *end)
{
    if (end - p < 5 || memcmp(p, "qid:", 4) != 0) return NULL;
    uint64_t id;
    const char *q = drps_number_u64(p + 4, &id);
    return !q || q == p + 4 || !ends_token(q, end) ? NULL : p + (q - p);
}

static int bad_id(struct drps_parse *ps, const char *p, const char *after)
{
    if (!after) return drps_parse_bad(ps, p, "feature id is above 2^64 - 1");
    if (after == p && *p == '-') return drps_parse_bad(ps, p, "feature id is negative");
    if (after == p) return drps_parse_bad(ps, p, "feature id is not a number");
    return drps_parse_bad(ps, p, "feature id is not followed by ':' and a value");
}

/* Add the entries from p on, as far as these are any. Returns their end, or NULL after naming the
 * fault. */
static const char *add_entries(struct drps_parse *ps, char *p, char *end)
{
    uint64_t *keys = ps->out->keys;
    float *values = ps->out->values;
    const char *q;
    for (;; p += q - p) {
        size_t n = ps->nnz;
        p = drps_skip_blanks(p);
        if (p == end) return p;
        q = drps_number_u64(p, &keys[n]);
        if (__builtin_expect(!q || q == p || *q != ':', 0)) {
            if (*p == '#') return p;
            const char *after_qid = skip_qid(p, end);
            if (!after_qid) {
                (void)bad_id(ps, p, q);
                return NULL;
            }
            q = after_qid;
            continue;
        }
        unsigned digit = (unsigned char)*++q - (unsigned)'0';
        if (__builtin_expect(digit < 10 && q[1] <= ' ', 1)) {
            values[n] = (float)digit;
            q++; /* a control byte there fails as the next id */
        } else {
            const char *value = q;
            q = drps_number_float(value, &values[n]);
            if (!q || !ends_token(q, end)) {
                (void)drps_parse_bad_number(ps, value, "value");
                return NULL;
            }
        }
        ps->nnz += values[n] != 0;
    }
}

static int libsvm_line(struct drps_reader *r, struct drps_parse *ps, char *p, char *end)
{
    const size_t first = ps->nnz;
    uint64_t *keys = ps->out->keys + first;
    float label = 0;

    p = drps_skip_blanks(p);
    if (p == end || *p == '#') return 0;
    const char *name = p, *name_end = drps_parse_first_label(r, ps, p, end, &label);
    if (!name_end) return DRPS_PARSE_BAD;
    p = drps_skip_blanks(p + (name_end - p));
    ps->nnz += drps_entries_plain(&p, end, keys, ps->out->values + first);
    if (!add_entries(ps, p, end)) return DRPS_PARSE_BAD;
    if (drps_reads_classes(&r->options) && drps_parse_class(r, ps, name, name_end, &label) < 0)
        return DRPS_PARSE_BAD;
    return drps_parse_sample(ps, label, !drps_entries_increase(keys, ps->nnz - first));
}

const struct drps_format drps_format_libsvm = {
    .name = "libsvm", .has_classes = 1, .bound = libsvm_bound, .line = libsvm_line};
