/*
 * Vowpal Wabbit's --invert_hash: a head that ends with the line ":0", then "name:hash:weight". The
 * feature Constant is the intercept. A name is what the format vw of drps calls the feature.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_extsort.h"
#include "engine/import/source.h"
#include "index/reader/drps_reader.h"

struct vw {
    struct import *m;            /* borrowed */
    struct drps_extsort *sort;   /* where names are collected; NULL: they are not */
    uint64_t features;           /* lines with one, but the intercept's, so far */
    float constant;              /* the intercept */
    int has_constant;            /* it was read */
    int in_weights, is_logistic; /* the head is over; its options say so */
};

/* Options that leave a score a sum over features: they say how it was learnt, and what may be in
 * it. Any other option may change what a score is. */
static const char *const allowed[] = {"hash",
                                      "hash_seed",
                                      "bit_precision",
                                      "b",
                                      "random_seed",
                                      "link",
                                      "noconstant",
                                      "ignore",
                                      "keep",
                                      "loss_function",
                                      "quantile_tau",
                                      "min_prediction",
                                      "max_prediction",
                                      "l1",
                                      "l2",
                                      "l",
                                      "learning_rate",
                                      "power_t",
                                      "initial_t",
                                      "decay_learning_rate",
                                      "passes",
                                      "sgd",
                                      "adaptive",
                                      "invariant",
                                      "normalized",
                                      "ftrl",
                                      "ftrl_alpha",
                                      "ftrl_beta",
                                      "pistol",
                                      "coin",
                                      "bfgs",
                                      "save_resume",
                                      "id",
                                      "preserve_performance_counters"};

/* A piece of a line, between blanks or '='. */
struct word {
    const char *text;
    size_t n;
};

static int is(const struct word *w, const char *text)
{
    return strlen(text) == w->n && memcmp(w->text, text, w->n) == 0;
}

static const char *next_word(const char *p, const char *end, struct word *out)
{
    while (p < end && strchr(" \t=", *p))
        p++;
    out->text = p;
    while (p < end && !strchr(" \t=", *p))
        p++;
    out->n = (size_t)(p - out->text);
    return p;
}

/* Returns whether the word is an option, and no value, which may be a number below 0: then *w is
 * its name. */
static int is_option(struct word *w)
{
    if (w->n < 2 || w->text[0] != '-' || strchr("0123456789.", w->text[1])) return 0;
    const size_t dashes = w->text[1] == '-' ? 2 : 1;
    w->text += dashes;
    w->n -= dashes;
    return 1;
}

static int refuse(const struct vw *v, const struct drps_line *line, const char *what,
                  const struct word *w, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s:%llu: a model with %s%.*s is not known to be a sum over features, and "
                        "cannot be imported",
                        v->m->o->input, (unsigned long long)line->number, what,
                        (int)(w->n < 80 ? w->n : 80), w->text);
}

static int take_options(struct vw *v, const struct drps_line *line, const char *p,
                        struct drps_err *err)
{
    const char *const end = line->text + line->n;
    struct word w;
    for (p = next_word(p, end, &w); w.n; p = next_word(p, end, &w)) {
        int known = !is_option(&w);
        for (size_t i = 0; !known && i < sizeof(allowed) / sizeof(allowed[0]); i++)
            known = is(&w, allowed[i]);
        if (!known) return refuse(v, line, "the option ", &w, err);
        if (!is(&w, "link")) continue;
        p = next_word(p, end, &w);
        v->is_logistic = is(&w, "logistic");
        if (!v->is_logistic && !is(&w, "identity")) return refuse(v, line, "the link ", &w, err);
    }
    return 0;
}

/* Checks the lines by which earlier versions tell what makes other features: "2 ngram:", "rank:5".
 * 0 means that there is none. */
static int check_part(const struct vw *v, const struct drps_line *line, struct drps_err *err)
{
    static const char *const behind[] = {"pairs:", "triples:", "interactions:", "ngram:", "skip:"};
    static const char *const before[] = {"rank:", "lda:"};
    const char *const end = line->text + line->n, *after = line->text;
    struct word w;
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
        const size_t n = strlen(before[i]);
        if (line->n <= n || memcmp(line->text, before[i], n) != 0) continue;
        (void)next_word(line->text + n, end, &w);
        if (w.n && !is(&w, "0")) return refuse(v, line, before[i], &w, err);
    }
    after = next_word(after, end, &w);
    if (!w.n || is(&w, "0")) return 0;
    (void)next_word(after, end, &w);
    for (size_t i = 0; i < sizeof(behind) / sizeof(behind[0]); i++)
        if (is(&w, behind[i])) return refuse(v, line, "", &w, err);
    return 0;
}

static int take_head(struct vw *v, const struct drps_line *line, struct drps_err *err)
{
    static const char options[] = "options:", end[] = ":0";
    if (line->n == sizeof(end) - 1 && memcmp(line->text, end, line->n) == 0) v->in_weights = 1;
    if (line->n < sizeof(options) - 1 || memcmp(line->text, options, sizeof(options) - 1) != 0)
        return check_part(v, line, err);
    return take_options(v, line, line->text + sizeof(options) - 1, err);
}

/* One feature of the file. */
struct feature {
    const char *name;
    size_t bytes;
    float weight;
};

static int parse(const struct vw *v, const struct drps_line *line, struct feature *f,
                 struct drps_err *err)
{
    const char *const end = line->text + line->n;
    const char *colon = memchr(line->text, ':', line->n);
    const char *second = colon ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;
    if (colon && !second)
        return import_bad(v->m, line->number,
                          "hashes without names: write the model with --invert_hash FILE in place "
                          "of --readable_model",
                          err);
    if (!second || colon == line->text || !import_number(second + 1, end, &f->weight))
        return import_bad(v->m, line->number, "no line of name:hash:weight", err);
    f->name = line->text;
    f->bytes = (size_t)(colon - line->text);
    return 0;
}

static int is_constant(const struct feature *f)
{
    static const char constant[] = "Constant";
    return f->bytes == sizeof(constant) - 1 && memcmp(f->name, constant, f->bytes) == 0;
}

static int sort_name(struct vw *v, const struct drps_line *line, const struct feature *f,
                     struct drps_err *err)
{
    uint64_t key;
    uint32_t check;
    drps_name_hash(0, f->name, f->bytes, v->m->info.hash_seed, &key, &check);
    const struct drps_sort_record r = {.hi = key,
                                       .lo = line->offset,
                                       .a = (uint32_t)v->features, /* its row */
                                       .b = (uint32_t)f->bytes};
    return drps_extsort_add(v->sort, &r, err);
}

static int take_line(void *ctx, const struct drps_line *line, struct drps_err *err)
{
    struct vw *v = ctx;
    struct feature f;
    if (!v->in_weights) return take_head(v, line, err);
    int rc = parse(v, line, &f, err);
    if (rc < 0) return rc;
    if (is_constant(&f)) {
        if (v->has_constant++)
            return import_bad(v->m, line->number, "Constant stands there twice", err);
        v->constant = f.weight;
        return 0;
    }
    if (++v->features > UINT32_MAX - 2)
        return import_bad(v->m, line->number, "more features than a model can have", err);
    if (v->sort) return sort_name(v, line, &f, err);
    return v->m->params ? drps_params_add_packed(v->m->params, v->features, 1, &f.weight, err) : 0;
}

static int read_all(struct vw *v, struct drps_err *err)
{
    v->features = 0;
    v->in_weights = v->has_constant = 0;
    return drps_lines_read(&v->m->io, v->m->o->input, take_line, v, err);
}

static int look(struct import *m, struct drps_err *err)
{
    static char feature[] = "feature";
    static char *fields[] = {feature};
    struct vw *v = calloc(1, sizeof(*v));
    if (!v) return drps_err_set(err, -ENOMEM, "no memory to import %s", m->o->input);
    m->own = v;
    v->m = m;
    int rc = read_all(v, err);
    if (rc < 0) return rc;
    if (!v->in_weights)
        return drps_err_set(err, DRPS_E_FORMAT, "%s has no line ':0', behind which weights stand",
                            m->o->input);
    const char *algo = m->o->algo ? m->o->algo : v->is_logistic ? "lor" : "lir";
    const struct drps_model_terms terms = {.algo = algo, .classes = strcmp(algo, "lir") != 0};
    m->info.string_names = 1;
    m->info.fields = fields;
    m->info.fields_n = 1;
    (void)memcpy(m->info.format, "vw", sizeof("vw"));
    return import_describe(m, &terms, v->features, 1, err);
}

static int rows(struct import *m, struct drps_err *err)
{
    struct vw *v = m->own;
    int rc = drps_params_add_packed(m->params, 0, 1, &v->constant, err);
    return rc == 0 ? read_all(v, err) : rc;
}

/* ---- Names ---- */

/* Writes the names in the order of keys; each is read from its place in the file. */
static int write_names(struct import *m, struct drps_extsort *sort, int fd, char *text,
                       struct drps_err *err)
{
    const struct drps_sort_record *r;
    uint64_t before = 0;
    int rc, begun = 0;
    while ((rc = drps_extsort_next(sort, &r, err)) > 0) {
        rc = drps_io_read_at(&m->io, fd, text, r->b, r->lo, m->o->input, err);
        if (rc == 0 && begun && r->hi == before)
            rc = drps_err_set(err, DRPS_E_FORMAT, "%s has the feature %.*s twice", m->o->input,
                              (int)(r->b < 200 ? r->b : 200), text);
        if (rc == 0) rc = drps_names_writer_add(m->names, r->hi, r->a, 0, text, r->b, err);
        if (rc < 0) return rc;
        before = r->hi;
        begun = 1;
    }
    return rc;
}

static int names(struct import *m, struct drps_err *err)
{
    struct vw *v = m->own;
    char *text = malloc(DRPS_LINES_BYTES);
    int fd = -1;
    int rc = text ? drps_extsort_open(&m->io, m->scratch, "names", m->sort_bytes, &v->sort, err)
                  : drps_err_set(err, -ENOMEM, "no memory for names");
    if (rc == 0) rc = read_all(v, err);
    if (rc == 0) rc = drps_extsort_finish(v->sort, err);
    if (rc == 0) rc = drps_io_open(&m->io, m->o->input, O_RDONLY, &fd, err);
    if (rc == 0) rc = write_names(m, v->sort, fd, text, err);
    drps_io_close(&m->io, fd);
    drps_extsort_close(v->sort);
    v->sort = NULL;
    free(text);
    return rc;
}

const struct import_source import_vw = {.name = "vw", .look = look, .rows = rows, .names = names};
