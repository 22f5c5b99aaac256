/*
 * Names to provisional ids, with counts, in the table of one generation (drps_dict.h), and the
 * maps from these to placed ids.
 */
#include "index/dictionary/dict_internal.h"

#include <errno.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_endian.h"
#include "index/plan/drps_names.h"

/* ---- Adding ---- */

/* Make room for up to n new keys and `text` bytes of names. 1 when a generation ended. */
static int make_room(struct dict *d, size_t n, size_t text, struct drps_err *err)
{
    int ended = 0;
    struct key_table *k = &d->keys;
    while (k->n + n > k->room || (d->arena_max && d->arena_n + text > d->arena_max && k->n)) {
        int rc = 0;
        const int full = k->n && d->arena_max && d->arena_n + text > d->arena_max;
        if (k->room < k->max && !full) {
            if (drps_key_table_grow(k) < 0)
                rc = drps_err_set(err, -ENOMEM, "no memory for a dictionary of %zu names",
                                  2 * k->room);
        } else if (k->n) {
            rc = drps_dict_end_generation(d, err);
            ended = 1;
        } else if (drps_key_table_raise(k, 2 * k->max) < 0) { /* one sample with more names than the
                                                       table holds: it is what it is */
            rc = drps_err_set(err, -ENOMEM, "no memory for a dictionary of %zu names", 2 * k->max);
        }
        if (rc < 0) return rc;
    }
    return ended;
}

static int keep_name(struct dict *d, const struct drps_name *name, size_t number,
                     struct drps_err *err)
{
    uint16_t field = (uint16_t)name->field;
    if (drps_array_reserve(&d->name_at, &d->name_cap, number + 1, sizeof(*d->name_at)) ||
        drps_array_reserve(&d->arena, &d->arena_cap, d->arena_n + DICT_NAME_HEAD + name->bytes, 1))
        return drps_err_set(err, -ENOMEM, "no memory for the dictionary's names");
    char *to = d->arena + d->arena_n;
    memcpy(to, &field, 2);
    drps_put_u32(to + 2, name->bytes);
    memcpy(to + DICT_NAME_HEAD, name->text, name->bytes);
    d->name_at[number] = d->arena_n;
    d->keys.checks[number] = name->check;
    d->arena_n += DICT_NAME_HEAD + name->bytes;
    return 0;
}

/* Keep the names of keys that are new: those with numbers from `known` on. */
static int keep_names(struct dict *d, const struct drps_name *names, size_t n, size_t known,
                      const uint32_t *numbers, struct drps_err *err)
{
    for (size_t j = 0; j < n; j++) {
        if (numbers[j] == known) {
            int rc = keep_name(d, &names[j], known++, err);
            if (rc < 0) return rc;
        } else if (d->keys.checks[numbers[j]] != names[j].check) {
            const struct dict_key name = {.text = names[j].text, .bytes = names[j].bytes};
            struct dict_key before = {.text = ""};
            drps_dict_name_of(d, numbers[j], &before);
            return drps_dict_collision(&d->options, &before, &name, err);
        }
    }
    return 0;
}

/* The use of keys by a sample at `time`. */
static struct key_use use_at(uint32_t time)
{
    if (time == DICT_TEST) return (struct key_use){0};
    return (struct key_use){.bit = (uint16_t)(1u << time / (DICT_TIMES / DICT_SEGMENTS)),
                            .left = (uint16_t)(UINT16_MAX - time)};
}

static size_t text_bytes(const struct drps_name *names, size_t n)
{
    size_t sum = 0;
    for (size_t j = 0; j < n; j++)
        sum += DICT_NAME_HEAD + names[j].bytes;
    return sum;
}

/* Ids are numbers of 32 bits, of which a generation takes those of all small keys. */
static int check_ids(const struct dict *d, size_t n, struct drps_err *err)
{
    const uint64_t base = d->bases[d->bases_n - 1];
    if (base + d->keys.small_n + d->keys.n + n < DRPS_NO_ROW) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "more feature names than can be numbered with so little memory (up to "
                        "4,294,967,294): raise the memory limit, or use a data set with fewer");
}

/* Any keys: those that are not small take room, and names of new ones are kept. */
static int add_any(struct dict *d, const struct drps_samples *s, size_t first, size_t last,
                   struct key_use use, uint32_t *ids_out, struct drps_err *err)
{
    struct key_table *k = &d->keys;
    const size_t n = last - first;
    const size_t text = d->options.strings ? text_bytes(s->names + first, n) : 0;
    int ended = 0;
    if (k->n + n > k->room || d->arena_n + text > d->arena_max) {
        ended = make_room(d, n, text, err);
        if (ended < 0) return ended;
        const int rc = check_ids(d, n, err);
        if (rc < 0) return rc;
    }
    const size_t known = k->n;
    drps_key_table_add(k, s->keys, first, last, s->starts[s->n], ids_out);
    if (d->options.strings) {
        int rc = keep_names(d, s->names + first, n, known, ids_out, err);
        if (rc < 0) return rc;
    }
    drps_key_table_use(k, ids_out, n, use);
    return ended;
}

int drps_dict_add(struct dict *d, const struct drps_samples *s, size_t first, size_t last,
                  uint32_t time, uint32_t *ids_out, struct drps_err *err)
{
    struct key_table *k = &d->keys;
    const size_t n = last - first;
    const struct key_use use = use_at(time);
    int ended = check_ids(d, n, err);
    if (ended < 0) return ended;
    if (drps_key_table_all_small(k, s->keys, first, last))
        drps_key_table_use_small(k, s->keys, first, last, s->starts[s->n], use, ids_out);
    else
        ended = add_any(d, s, first, last, use, ids_out, err);
    const uint32_t base = d->bases[d->bases_n - 1];
    for (size_t j = 0; base && ended >= 0 && j < n; j++)
        ids_out[j] += base;
    return ended;
}

/* ---- Placed ids ---- */

const uint32_t *drps_dict_placed(const struct dict *d)
{
    return d->placed;
}

int drps_dict_map(struct dict *d, size_t generation, uint32_t *map_out, struct drps_err *err)
{
    uint64_t from = drps_dict_base(d, generation);
    size_t n = drps_dict_base(d, generation + 1) - (size_t)from;
    if (d->placed) {
        memcpy(map_out, d->placed, n * sizeof(*map_out));
        return 0;
    }
    return drps_io_read_at(d->io, d->map_fd, map_out, n * sizeof(*map_out), from * sizeof(*map_out),
                           d->map_path, err);
}
