/*
 * LIBFFM text: "label field:id:value ...". The feature's id is its key. The field is checked to be
 * a number, and kept where the model has fields.
 */
#include "index/plan/drps_algorithm.h"
#include "index/reader/drps_parse.h"

static size_t libffm_bound(const struct drps_reader *r, const char *text, size_t n, size_t lines)
{
    (void)r;
    (void)lines;
    return drps_text_count(text, n, ':') / 2;
}

static int ends_token(const char *p, const char *end)
{
    return p == end || drps_is_blank(*p) || *p == '#';
}

/* Read one "number:" at p. Returns what follows the colon, or NULL after naming the fault. */
static const char *parse_part(struct drps_parse *ps, const char *p, const char *what,
                              uint64_t *v_out)
{
    const char *q = drps_number_u64(p, v_out);
    if (q && q != p && *q == ':') return q + 1;
    if (!q)
        (void)drps_parse_bad(ps, p, "%s is above 2^64 - 1", what);
    else if (q == p)
        (void)drps_parse_bad(ps, p, "%s %s", what, *p == '-' ? "is negative" : "is not a number");
    else
        (void)drps_parse_bad(ps, p, "%s is not followed by ':' (field:id:value is expected)", what);
    return NULL;
}

static int libffm_line(struct drps_reader *r, struct drps_parse *ps, char *p, char *end)
{
    size_t first = ps->nnz, n = first;
    uint64_t before = 0;
    int disorder = 0;
    float label = 0;

    p = drps_skip_blanks(p);
    if (p == end || *p == '#') return 0;
    const char *name = p, *name_end = drps_parse_first_label(r, ps, p, end, &label), *q = name_end;
    if (!q) return DRPS_PARSE_BAD;
    for (p += q - p;; p += q - p) {
        uint64_t field, id;
        p = drps_skip_blanks(p);
        if (p == end || *p == '#') break;
        const char *at = parse_part(ps, p, "field", &field);
        if (!at) return DRPS_PARSE_BAD;
        if (ps->out->fields && field > DRPS_FIELD_MAX)
            return drps_parse_bad(ps, p, "field is above %d", DRPS_FIELD_MAX);
        const char *value = parse_part(ps, at, "feature id", &id);
        if (!value) return DRPS_PARSE_BAD;
        float v;
        q = drps_number_float(value, &v);
        if (!q || !ends_token(q, end)) return drps_parse_bad_number(ps, value, "value");
        ps->out->keys[n] = id;
        ps->out->values[n] = v;
        if (ps->out->fields) ps->out->fields[n] = (uint16_t)field;
        disorder |= (id <= before) & (n != first);
        before = id;
        n += v != 0;
    }
    ps->nnz = n;
    if (drps_reads_classes(&r->options) && drps_parse_class(r, ps, name, name_end, &label) < 0)
        return DRPS_PARSE_BAD;
    return drps_parse_sample(ps, label, disorder);
}

const struct drps_format drps_format_libffm = {.name = "libffm",
                                               .has_classes = 1,
                                               .has_fields = 1,
                                               .bound = libffm_bound,
                                               .line = libffm_line};
