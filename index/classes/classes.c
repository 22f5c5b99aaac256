/* The table of classes: names are found by their hash, and sorted once all are known. */
#include "index/classes/drps_classes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "index/classes/classes_internal.h"
#include "index/classes/decimal.h"

enum { FIRST_SLOTS = 64 };

struct drps_classes {
    size_t n, cap, slots_n; /* slots_n is a power of 2, more than 2 n */
    char **names;           /* own: [n] of [cap] */
    uint32_t *slots;        /* own: 1 + the number of a class, 0 where there is none */
};

struct drps_classes *drps_classes_new(void)
{
    struct drps_classes *c = calloc(1, sizeof(*c));
    if (!c) return NULL;
    c->slots_n = FIRST_SLOTS;
    c->slots = calloc(c->slots_n, sizeof(*c->slots));
    if (c->slots) return c;
    free(c);
    return NULL;
}

void drps_classes_free(struct drps_classes *c)
{
    if (!c) return;
    for (size_t i = 0; i < c->n; i++)
        free(c->names[i]);
    free(c->names);
    free(c->slots);
    free(c);
}

size_t drps_classes_count(const struct drps_classes *c)
{
    return c ? c->n : 0;
}

const char *drps_classes_name(const struct drps_classes *c, size_t i)
{
    return c->names[i];
}

/* ---- Finding ---- */

/* Returns the slot of a name, or the free one where it belongs. */
static size_t slot_of(const struct drps_classes *c, const char *name, size_t n)
{
    size_t at = (size_t)drps_checksum(name, n) & (c->slots_n - 1);
    for (; c->slots[at]; at = (at + 1) & (c->slots_n - 1)) {
        const char *have = c->names[c->slots[at] - 1];
        if (strlen(have) == n && memcmp(have, name, n) == 0) break;
    }
    return at;
}

static void fill_slots(struct drps_classes *c)
{
    memset(c->slots, 0, c->slots_n * sizeof(*c->slots));
    for (size_t i = 0; i < c->n; i++)
        c->slots[slot_of(c, c->names[i], strlen(c->names[i]))] = (uint32_t)i + 1;
}

/* Returns the bytes of a label's name, which goes to `name`; 0: it is too long for one. */
static size_t name_of(const char *label, size_t n, char name[DRPS_CLASS_NAME_BYTES])
{
    struct decimal d;
    if (n >= DRPS_CLASS_NAME_BYTES - 1) return 0; /* ".5" becomes "0.5" */
    if (decimal_read(label, n, &d)) return decimal_write(&d, name);
    memcpy(name, label, n);
    return n;
}

int32_t drps_classes_find(const struct drps_classes *c, const char *label, size_t n)
{
    char name[DRPS_CLASS_NAME_BYTES];
    const size_t bytes = name_of(label, n, name);
    const uint32_t found = bytes ? c->slots[slot_of(c, name, bytes)] : 0;
    return (int32_t)found - 1;
}

/* ---- Adding ---- */

static int grow(struct drps_classes *c)
{
    if (drps_array_reserve(&c->names, &c->cap, c->n + 1, sizeof(*c->names))) return 0;
    if (2 * (c->n + 1) < c->slots_n) return 1;
    uint32_t *slots = calloc(2 * c->slots_n, sizeof(*slots));
    if (!slots) return 0;
    free(c->slots);
    c->slots = slots;
    c->slots_n *= 2;
    fill_slots(c);
    return 1;
}

/* Manifests hold names as JSON, and predictions as lines. */
static int is_text(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f) return 0;
    json_t *j = json_stringn(name, n);
    json_decref(j);
    return j != NULL;
}

int32_t drps_class_check(const char *label, size_t n)
{
    char name[DRPS_CLASS_NAME_BYTES];
    if (!n) return DRPS_CLASS_EMPTY;
    const size_t bytes = name_of(label, n, name);
    if (!bytes) return DRPS_CLASS_LONG;
    return is_text(name, bytes) ? 0 : DRPS_CLASS_TEXT;
}

int32_t drps_classes_add(struct drps_classes *c, const char *label, size_t n)
{
    char name[DRPS_CLASS_NAME_BYTES];
    if (!n) return DRPS_CLASS_EMPTY;
    const size_t bytes = name_of(label, n, name);
    if (!bytes) return DRPS_CLASS_LONG;
    const size_t at = slot_of(c, name, bytes);
    if (c->slots[at]) return (int32_t)c->slots[at] - 1;
    if (!is_text(name, bytes)) return DRPS_CLASS_TEXT;
    if (c->n == DRPS_CLASSES_MOST) return DRPS_CLASS_MANY;
    if (!grow(c)) return DRPS_CLASS_MEMORY;
    c->names[c->n] = strndup(name, bytes);
    if (!c->names[c->n]) return DRPS_CLASS_MEMORY;
    c->slots[slot_of(c, name, bytes)] = (uint32_t)++c->n;
    return (int32_t)c->n - 1;
}

const char *drps_class_fault(int32_t fault)
{
    switch (fault) {
    case DRPS_CLASS_EMPTY:
        return "is empty";
    case DRPS_CLASS_LONG:
        return "is longer than a class's name may be, 249 bytes";
    case DRPS_CLASS_TEXT:
        return "is no UTF-8 text, or has a control character in it";
    case DRPS_CLASS_MANY:
        return "is one more than 65,535 classes: for labels that are numbers, not names, use the "
               "algorithm lir";
    default:
        return "finds no memory for one more class";
    }
}

struct drps_classes *drps_classes_copy(const struct drps_classes *c)
{
    struct drps_classes *copy = drps_classes_new();
    for (size_t i = 0; copy && i < c->n; i++)
        if (drps_classes_add(copy, c->names[i], strlen(c->names[i])) < 0) {
            drps_classes_free(copy);
            copy = NULL;
        }
    return copy;
}

int drps_classes_same(const struct drps_classes *a, const struct drps_classes *b)
{
    if (drps_classes_count(a) != drps_classes_count(b)) return 0;
    for (size_t i = 0; i < drps_classes_count(a); i++)
        if (strcmp(a->names[i], b->names[i]) != 0) return 0;
    return 1;
}

/* ---- Order ---- */

struct entry {
    char *name;
    uint32_t was;
};

static int by_bytes(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int by_value(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    struct decimal dx, dy;
    (void)decimal_read(x->name, strlen(x->name), &dx); /* all are: see order_of() */
    (void)decimal_read(y->name, strlen(y->name), &dy);
    return decimal_compare(&dx, &dy);
}

typedef int (*order)(const void *, const void *);

static order order_of(const struct drps_classes *c)
{
    struct decimal d;
    for (size_t i = 0; i < c->n; i++)
        if (!decimal_read(c->names[i], strlen(c->names[i]), &d)) return by_bytes;
    return by_value;
}

int drps_classes_sort(struct drps_classes *c, uint32_t **to_out, struct drps_err *err)
{
    struct entry *entries = drps_array_new(c->n, sizeof(*entries));
    uint32_t *to = *to_out = drps_array_new(c->n, sizeof(*to));
    if (!entries || !to) {
        free(entries);
        free(to);
        *to_out = NULL;
        return drps_err_set(err, -ENOMEM, "no memory for %zu classes", c->n);
    }
    for (size_t i = 0; i < c->n; i++)
        entries[i] = (struct entry){c->names[i], (uint32_t)i};
    qsort(entries, c->n, sizeof(*entries), order_of(c));
    for (size_t i = 0; i < c->n; i++) {
        c->names[i] = entries[i].name;
        to[entries[i].was] = (uint32_t)i;
    }
    fill_slots(c);
    free(entries);
    return 0;
}

int classes_in_order(const struct drps_classes *c)
{
    const order compare = order_of(c);
    for (size_t i = 1; i < c->n; i++) {
        const struct entry a = {.name = c->names[i - 1]}, b = {.name = c->names[i]};
        if (compare(&a, &b) >= 0) return 0;
    }
    return 1;
}
