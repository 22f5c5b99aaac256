/* Gradients and parameters on their way: bits of a value, the paper's filters, the largest values.
 */
#include "api/settings/traffic.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "api/settings/drps_train_keys.h"

enum { PARTS = 3 };

static uint32_t bits_of(struct drps_values *v, const char *text)
{
    static const char *const names[] = {"8bit", "16bit", "32bit", NULL};
    static const uint32_t bits[] = {8, 16, 32};
    return bits[drps_value_choice(v, text, names)];
}

/* ---- NAME=X,NAME=X ---- */

struct part {
    const char *name; /* with the = */
    double *value;
    double least, most;
};

/* Take one of them. `names` are all, for people. */
static void take_part(struct drps_values *v, const struct part parts[PARTS], const char *names,
                      const char *text)
{
    for (size_t i = 0; i < PARTS; i++) {
        const size_t n = strlen(parts[i].name);
        if (strncmp(text, parts[i].name, n) != 0) continue;
        *parts[i].value = drps_value_real(v, text + n, parts[i].least, parts[i].most);
        return;
    }
    drps_value_bad(v, "'%s' is none of %s", text, names);
}

static void take_parts(struct drps_values *v, const struct part parts[PARTS], const char *names,
                       const char *text)
{
    char part[DRPS_VALUE_PART_BYTES];
    while (drps_value_part(v, &text, part))
        take_part(v, parts, names, part);
}

/* ---- Gradients ---- */

/* Without phi any value may be held back. */
static void take_push_filter(struct drps_values *v, struct drps_push_options *o, const char *text)
{
    const struct part parts[PARTS] = {
        {"phi=", &o->phi, 0, 1e30}, {"d=", &o->decay, 0, 1e30}, {"p=", &o->chance, DBL_MIN, 1}};
    o->phi = INFINITY;
    o->decay = 0;
    o->chance = 1;
    take_parts(v, parts, "phi=X, d=X and p=X", text);
    if (isinf(o->phi) && o->chance >= 1)
        drps_value_bad(v, "say which values are held back: those below phi=X, or a share p=X, "
                          "or a share p=X of those below phi=X");
}

static double top_of(struct drps_values *v, const char *text)
{
    const double top = drps_value_share(v, text);
    if (!(top > 0)) drps_value_bad(v, "'%s' sends nothing", text);
    return top;
}

/* Take "3", "last" or, with bits of a value, "last,16bit". */
static void take_flush(struct drps_values *v, struct drps_push_options *o, const char *text)
{
    char epochs[DRPS_VALUE_PART_BYTES];
    if (!drps_value_part(v, &text, epochs)) return;
    o->whole_bits = text ? bits_of(v, text) : 0;
    o->flush = strcmp(epochs, "last") == 0
                   ? UINT32_MAX
                   : (uint32_t)drps_value_count(v, epochs, 1, UINT32_MAX - 1);
}

int settings_push(struct drps_push_options *o, struct drps_values *v, int key, const char *text)
{
    switch (key) {
    case KEY_PUSH_VALUES:
        o->bits = bits_of(v, text);
        break;
    case KEY_PUSH_FILTER:
        take_push_filter(v, o, text);
        break;
    case KEY_PUSH_TOP:
        o->top = top_of(v, text);
        break;
    case KEY_PUSH_FLUSH:
        take_flush(v, o, text);
        break;
    default:
        return 0;
    }
    o->on = 1;
    return 1;
}

/* ---- Parameters ---- */

static void take_pull_filter(struct drps_values *v, struct drps_pull_options *o, const char *text)
{
    const struct part parts[PARTS] = {
        {"psi=", &o->psi, 0, 1e30}, {"d=", &o->decay, 0, 1e30}, {"eps=", &o->eps, 0, 1e30}};
    o->psi = o->decay = 0;
    o->eps = DRPS_PULL_EPS;
    take_parts(v, parts, "psi=X, d=X and eps=X", text);
}

int settings_pull(struct drps_pull_options *o, struct drps_values *v, int key, const char *text)
{
    switch (key) {
    case KEY_PULL_VALUES:
        o->bits = bits_of(v, text);
        break;
    case KEY_PULL_FILTER:
        take_pull_filter(v, o, text);
        break;
    default:
        return 0;
    }
    o->on = 1;
    return 1;
}
