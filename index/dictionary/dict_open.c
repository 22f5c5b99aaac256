/* Opening and closing the dictionary, and what its other files ask of the open one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/dictionary/dict_internal.h"

enum {
    SMALL_KEYS = 1 << 24,
    SMALL_LEAST = 1 << 16,
    SMALL_BYTES = 16, /* beside each key that is not small */
};

int drps_dict_push_base(struct dict *d, uint32_t base, struct drps_err *err)
{
    if (drps_array_reserve(&d->bases, &d->bases_cap, d->bases_n + 1, sizeof(*d->bases)))
        return drps_err_set(err, -ENOMEM, "no memory for the dictionary");
    d->bases[d->bases_n++] = base;
    return 0;
}

/* Keys of names are hashes: none is small on purpose. Few data have few keys, which may be far
 * apart: the array takes no more than twice the bytes of the data. */
static size_t small_keys(const struct dict_options *o, size_t max)
{
    const uint64_t few = o->input_bytes / 4 + SMALL_LEAST;
    size_t most = max * SMALL_BYTES / sizeof(struct key_count), n = SMALL_KEYS;
    if (o->input_bytes && few < most) most = (size_t)few;
    while (n > most)
        n /= 2;
    return o->strings ? 0 : n;
}

int drps_dict_open(const struct drps_io *io, const char *dir, const struct dict_options *options,
                   struct dict **d_out, struct drps_err *err)
{
    *d_out = NULL;
    struct dict *d = calloc(1, sizeof(*d));
    if (!d) return drps_err_set(err, -ENOMEM, "no memory for the dictionary");
    d->io = io;
    d->options = *options;
    d->map_fd = -1;
    d->dir = strdup(dir);
    /* While keys are sorted there are two arrays of them; before, the table's lines take less, the
     * old ones that are left when it grows included. Strings take as much again. */
    const uint64_t key_bytes = sizeof(struct key_entry) + 2 * sizeof(struct dict_keyed) +
                               (options->strings ? sizeof(*d->keys.checks) : SMALL_BYTES);
    const uint64_t table_bytes = options->memory_bytes / (options->strings ? 3 : 1);
    d->arena_max = options->strings ? (size_t)(options->memory_bytes / 3) : 0;
    const size_t max = (size_t)(table_bytes / key_bytes);
    int rc = d->dir && drps_key_table_init(&d->keys, max, small_keys(options, max),
                                           options->strings) == 0
                 ? drps_dict_push_base(d, 0, err)
                 : drps_err_set(err, -ENOMEM, "no memory for the dictionary");
    if (rc < 0) {
        drps_dict_close(d);
        return rc;
    }
    *d_out = d;
    return 0;
}

void drps_dict_free_sorted(struct dict *d)
{
    drps_pages_free(d->sorted, d->keys.n * sizeof(*d->sorted));
    d->sorted = NULL;
}

void drps_dict_free_names(struct dict *d)
{
    free(d->arena);
    free(d->name_at);
    d->arena = NULL;
    d->name_at = NULL;
}

void drps_dict_free_table(struct dict *d)
{
    drps_dict_free_sorted(d);
    drps_key_table_destroy(&d->keys);
    drps_dict_free_names(d);
}

void drps_dict_close(struct dict *d)
{
    if (!d) return;
    drps_io_close(d->io, d->map_fd);
    drps_pages_free(d->placed, d->placed_n * sizeof(*d->placed));
    free(d->map_path);
    free(d->dir);
    drps_dict_free_table(d);
    free(d->bases);
    free(d);
}

size_t drps_dict_generations(const struct dict *d)
{
    return d->bases_n - 1; /* the last base was pushed by drps_dict_seal() */
}

uint32_t drps_dict_base(const struct dict *d, size_t generation)
{
    return d->bases[generation];
}
