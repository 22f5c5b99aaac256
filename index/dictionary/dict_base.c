/* Reads an earlier plan's names beside those of a new one, both in the order of keys. */
#include "index/dictionary/dict_base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "index/plan/drps_names_writer.h"

struct dict_base {
    const struct dict *d;       /* borrowed */
    struct drps_names *look_up; /* own */
    struct drps_names *scan;    /* own: apart, so that each has its page */
};

struct dict_names {
    const struct dict *d;
    struct dict_base *base;
    struct names_writer *out; /* own */
    int more;                 /* 1: `next` is to be written */
    int begun;
    struct drps_names_entry next; /* of the base */
};

/* ---- Looking up ---- */

int drps_dict_base_open(const struct dict *d, struct dict_base **b_out, struct drps_err *err)
{
    *b_out = NULL;
    if (!d->options.base_dir) return 0;
    struct dict_base *b = calloc(1, sizeof(*b));
    if (!b) return drps_err_set(err, -ENOMEM, "no memory for the names of an earlier plan");
    b->d = d;
    int rc = drps_names_open(d->io, d->options.base_dir, &b->look_up, err);
    if (rc == 0) rc = drps_names_open(d->io, d->options.base_dir, &b->scan, err);
    if (rc < 0) {
        drps_dict_base_close(b);
        return rc;
    }
    *b_out = b;
    return 0;
}

void drps_dict_base_close(struct dict_base *b)
{
    if (!b) return;
    drps_names_close(b->look_up);
    drps_names_close(b->scan);
    free(b);
}

static int check_row(const struct dict_base *b, uint32_t row, struct drps_err *err)
{
    const struct dict_options *o = &b->d->options;
    if (row < o->base_rows) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s/" DRPS_FILE_NAMES " names row %u of %llu",
                        o->base_dir, row, (unsigned long long)o->base_rows);
}

int drps_dict_base_row(struct dict_base *b, uint64_t key, uint32_t *row_out, struct drps_err *err)
{
    *row_out = DRPS_NO_ROW;
    if (!b) return 0;
    int rc = drps_names_lookup(b->look_up, &key, 1, row_out, err);
    return rc == 0 && *row_out != DRPS_NO_ROW ? check_row(b, *row_out, err) : rc;
}

/* ---- The new dictionary ---- */

static int out_of_order(const struct dict_names *n, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s/" DRPS_FILE_NAMES ": key %016llx is not behind the key before it",
                        n->d->options.base_dir, (unsigned long long)n->next.key);
}

/* Go to the base's next name. */
static int step(struct dict_names *n, struct drps_err *err)
{
    const uint64_t last = n->next.key;
    const int is_first = !n->begun;
    n->begun = 1;
    int rc = n->base ? drps_names_next(n->base->scan, &n->next, err) : 0;
    n->more = rc > 0;
    if (rc <= 0) return rc;
    if (!is_first && n->next.key <= last) return out_of_order(n, err);
    if (!n->next.text != !n->d->options.strings)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s/" DRPS_FILE_NAMES " has names of another kind",
                            n->d->options.base_dir);
    return check_row(n->base, n->next.row, err);
}

int drps_dict_names_open(const struct dict *d, struct dict_base *base, const char *dir,
                         struct dict_names **n_out, struct drps_err *err)
{
    *n_out = NULL;
    struct dict_names *n = calloc(1, sizeof(*n));
    if (!n) return drps_err_set(err, -ENOMEM, "no memory for the dictionary");
    n->d = d;
    n->base = base;
    int rc = drps_names_writer_open(d->io, dir, d->options.strings, &n->out, err);
    if (rc == 0) rc = step(n, err);
    if (rc < 0) {
        drps_dict_names_close(n);
        return rc;
    }
    *n_out = n;
    return 0;
}

static int write_name(struct dict_names *n, const struct drps_names_entry *name,
                      struct drps_err *err)
{
    return drps_names_writer_add(n->out, name->key, name->row, name->field, name->text, name->bytes,
                                 err);
}

/* Write the base's names whose keys come before, or all. */
static int write_before(struct dict_names *n, const uint64_t *key, struct drps_err *err)
{
    int rc = 0;
    while (rc == 0 && n->more && (!key || n->next.key < *key)) {
        rc = write_name(n, &n->next, err);
        if (rc == 0) rc = step(n, err);
    }
    return rc;
}

static int is_same(const struct drps_names_entry *a, const struct drps_names_entry *b)
{
    if (!a->text) return 1;
    return a->field == b->field && a->bytes == b->bytes && memcmp(a->text, b->text, a->bytes) == 0;
}

int drps_dict_names_add(struct dict_names *n, const struct drps_names_entry *name,
                        struct drps_err *err)
{
    int rc = write_before(n, &name->key, err);
    if (rc < 0) return rc;
    if (!n->more || n->next.key != name->key) return write_name(n, name, err);
    if (is_same(&n->next, name)) return 0; /* it is written with the base's others */
    const struct dict_key before = {.text = n->next.text, .bytes = n->next.bytes};
    const struct dict_key after = {.text = name->text, .bytes = name->bytes};
    return drps_dict_collision(&n->d->options, &before, &after, err);
}

int drps_dict_names_finish(struct dict_names *n, struct drps_err *err)
{
    int rc = write_before(n, NULL, err);
    return rc == 0 ? drps_names_writer_finish(n->out, err) : rc;
}

void drps_dict_names_close(struct dict_names *n)
{
    if (!n) return;
    drps_names_writer_close(n->out);
    free(n);
}
