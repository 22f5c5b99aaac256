/*
 * libffm's model. Binary: n features, m fields, k factors as int32, a byte that says whether
 * samples are normalised, then of each feature and field the factors in groups of 4, filled up with
 * any numbers, and behind each group the 4 sums of AdaGrad, which begin at 1 and grow. As text, of
 * earlier versions: lines "n 5", "m 3", "k 4", "normalization 1", then "w0,0 .1 .2 .3 .4", with a T
 * or F in front of the numbers in some.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_endian.h"
#include "engine/import/source.h"

enum { HEAD_BYTES = 13, GROUP = 4 };

struct libffm {
    struct import *m;            /* borrowed */
    uint64_t n, fields, factors; /* features */
    uint64_t normalized;         /* 0 or 1 */
    int is_text;
    uint64_t pairs;  /* text: lines of weights so far */
    size_t dim;      /* of a row */
    float *row, *in; /* own: [dim]; [fields][2 * factors filled up] */
};

static int describe(struct libffm *f, struct drps_err *err)
{
    struct import *m = f->m;
    struct drps_err why = DRPS_ERR_INIT;
    const struct drps_model_terms terms = {
        .algo = "ffm", .factors = (uint32_t)f->factors, .classes = 1};
    if (!f->n || !f->fields || !f->factors || f->fields > DRPS_FIELD_MAX ||
        f->factors > DRPS_FACTORS_MAX || f->normalized > 1)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "%s is no model of libffm that drps can have: %llu features, %llu "
                            "fields, %llu factors",
                            m->o->input, (unsigned long long)f->n, (unsigned long long)f->fields,
                            (unsigned long long)f->factors);
    (void)memcpy(m->info.format, "libffm", sizeof("libffm"));
    int rc = import_describe(m, &terms, f->n, 0, err);
    if (rc == 0 &&
        drps_model_set_fields(&m->info.model, (uint32_t)f->fields, (int)f->normalized, &why) < 0)
        rc = drps_err_set(err, DRPS_E_CONFIG, "%s: %s", m->o->input, why.text);
    f->dim = m->info.model.dim;
    f->row = rc == 0 ? calloc(f->dim, sizeof(*f->row)) : NULL;
    if (rc == 0 && !f->row) rc = drps_err_set(err, -ENOMEM, "no memory for a row");
    return rc;
}

/* ---- Binary ---- */

static size_t filled_up(const struct libffm *f)
{
    return (size_t)(f->factors + GROUP - 1) / GROUP * GROUP;
}

static uint64_t row_bytes(const struct libffm *f)
{
    return f->fields * 2 * filled_up(f) * sizeof(float);
}

static int look_binary(struct libffm *f, int fd, uint64_t size, struct drps_err *err)
{
    char head[HEAD_BYTES];
    uint64_t due;
    int rc = drps_io_read_at(&f->m->io, fd, head, sizeof(head), 0, f->m->o->input, err);
    if (rc < 0) return rc;
    f->n = drps_get_u32(head);
    f->fields = drps_get_u32(head + 4);
    f->factors = drps_get_u32(head + 8);
    f->normalized = (unsigned char)head[12];
    rc = describe(f, err);
    if (rc < 0) return rc;
    if (__builtin_mul_overflow(f->n, row_bytes(f), &due) || due + HEAD_BYTES != size)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "%s has %llu bytes, and its head promises another size: it is no model "
                            "of libffm built with SSE, or cut off",
                            f->m->o->input, (unsigned long long)size);
    f->in = drps_array_new(row_bytes(f), 1);
    return f->in ? 0 : drps_err_set(err, -ENOMEM, "no memory for a row");
}

/* Takes the factors of one feature from groups of 4 numbers and 4 sums. Returns 0 if a sum cannot
 * be one. */
static int unpack(const struct libffm *f)
{
    const size_t filled = filled_up(f);
    int good = 1;
    for (size_t field = 0; field < f->fields; field++)
        for (size_t k = 0; k < f->factors; k++) {
            const float *from = f->in + field * 2 * filled + k / GROUP * 2 * GROUP + k % GROUP;
            f->row[1 + field * f->factors + k] = from[0];
            good &= from[GROUP] >= 1;
        }
    return good;
}

static int rows_binary(struct libffm *f, int fd, struct drps_err *err)
{
    const uint64_t bytes = row_bytes(f);
    int rc = 0;
    for (uint64_t i = 0; i < f->n && rc == 0; i++) {
        rc = drps_io_read_at(&f->m->io, fd, f->in, bytes, HEAD_BYTES + i * bytes, f->m->o->input,
                             err);
        if (rc == 0 && !unpack(f))
            rc = drps_err_set(err, DRPS_E_FORMAT,
                              "%s: feature %llu has sums below 1: it is no model of libffm built "
                              "with SSE",
                              f->m->o->input, (unsigned long long)i);
        if (rc == 0) rc = drps_params_add_packed(f->m->params, i, 1, f->row, err);
    }
    return rc;
}

/* ---- Text ---- */

static int take_head(struct libffm *f, const struct drps_line *line, struct drps_err *err)
{
    const struct {
        const char *key;
        uint64_t *to;
    } keys[] = {
        {"n ", &f->n}, {"m ", &f->fields}, {"k ", &f->factors}, {"normalization ", &f->normalized}};
    for (size_t i = 0; i < 4; i++) {
        const size_t n = strlen(keys[i].key);
        if (line->n <= n || memcmp(line->text, keys[i].key, n) != 0) continue;
        const char *q = drps_number_u64(line->text + n, keys[i].to);
        if (q && q == line->text + line->n) return 0;
    }
    return import_bad(f->m, line->number, "no line of a model of libffm", err);
}

/* Reads a line such as "w3,1 T .1 .2", whose feature and field must be the next ones. */
static int take_factors(struct libffm *f, const struct drps_line *line, struct drps_err *err)
{
    const char *p = line->text + 1, *const end = line->text + line->n;
    const uint64_t field = f->pairs % f->fields, feature = f->pairs / f->fields;
    uint64_t a = 0, b = 0;
    p = drps_number_u64(p, &a);
    if (p && *p == ',') p = drps_number_u64(p + 1, &b);
    if (!p || p >= end || *p != ' ' || a != feature || b != field || feature >= f->n)
        return import_bad(f->m, line->number, "not the feature and field that are next", err);
    for (p++; p < end && (*p == 'T' || *p == 'F' || *p == ' '); p++) {
    }
    for (size_t k = 0; k < f->factors; k++)
        if (!(p = import_number(p, end, &f->row[1 + field * f->factors + k])))
            return import_bad(f->m, line->number, "too few factors, or one that is no number", err);
    if (p < end) return import_bad(f->m, line->number, "too many factors", err);
    f->pairs++;
    if (field + 1 < f->fields || !f->m->params) return 0;
    return drps_params_add_packed(f->m->params, feature, 1, f->row, err);
}

static int take_line(void *ctx, const struct drps_line *line, struct drps_err *err)
{
    struct libffm *f = ctx;
    int rc = 0;
    if (line->text[0] != 'w') return f->row ? 0 : take_head(f, line, err);
    if (!f->row) rc = describe(f, err);
    return rc == 0 ? take_factors(f, line, err) : rc;
}

static int read_text(struct libffm *f, struct drps_err *err)
{
    f->pairs = 0;
    int rc = drps_lines_read(&f->m->io, f->m->o->input, take_line, f, err);
    if (rc < 0 || (f->row && f->pairs == f->n * f->fields)) return rc;
    return drps_err_set(err, DRPS_E_FORMAT, "%s ends after %llu of %llu lines of factors",
                        f->m->o->input, (unsigned long long)f->pairs,
                        (unsigned long long)(f->n * f->fields));
}

/* ---- Both ---- */

static int look(struct import *m, struct drps_err *err)
{
    struct libffm *f = calloc(1, sizeof(*f));
    char first[2] = "";
    uint64_t size = 0;
    int fd = -1;
    if (!f) return drps_err_set(err, -ENOMEM, "no memory to import %s", m->o->input);
    m->own = f;
    f->m = m;
    int rc = drps_io_open(&m->io, m->o->input, O_RDONLY, &fd, err);
    if (rc == 0) rc = drps_io_size(&m->io, fd, m->o->input, &size, err);
    if (rc == 0 && size < HEAD_BYTES)
        rc = drps_err_set(err, DRPS_E_FORMAT, "%s has %llu bytes: it is no model", m->o->input,
                          (unsigned long long)size);
    if (rc == 0) rc = drps_io_read_at(&m->io, fd, first, sizeof(first), 0, m->o->input, err);
    f->is_text = memcmp(first, "n ", 2) == 0;
    if (rc == 0) rc = f->is_text ? read_text(f, err) : look_binary(f, fd, size, err);
    drps_io_close(&m->io, fd);
    return rc;
}

static int rows(struct import *m, struct drps_err *err)
{
    struct libffm *f = m->own;
    int fd;
    if (f->is_text) return read_text(f, err);
    int rc = drps_io_open(&m->io, m->o->input, O_RDONLY, &fd, err);
    if (rc == 0) rc = rows_binary(f, fd, err);
    drps_io_close(&m->io, fd);
    return rc;
}

static int names(struct import *m, struct drps_err *err)
{
    const struct libffm *f = m->own;
    return import_number_names(m, 0, 0, f->n, err);
}

static void end(struct import *m)
{
    struct libffm *f = m->own;
    if (!f) return;
    free(f->row);
    free(f->in);
}

const struct import_source import_libffm = {
    .name = "libffm", .look = look, .rows = rows, .names = names, .end = end};
