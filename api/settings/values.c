/* Texts become numbers; what is wrong is told with the setting's name, an example, or the limits.
 */
#include "api/settings/drps_values.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"

/* ---- What is wrong ---- */

struct text {
    char p[900]; /* of struct drps_err, with room for the name in front */
    size_t n;
};

static void put(struct text *t, const char *part, size_t n)
{
    if (n > sizeof(t->p) - 1 - t->n) n = sizeof(t->p) - 1 - t->n;
    memcpy(t->p + t->n, part, n);
    t->n += n;
    t->p[t->n] = '\0';
}

/* The format with names of settings as this caller shows them. */
static void show_names(const struct drps_values *v, const char *fmt, struct text *out)
{
    for (const char *p = fmt; *p;) {
        const size_t plain = strcspn(p, "{}");
        put(out, p, plain);
        p += plain;
        if (!*p) break;
        const char *around = *p == '{' ? v->before : v->behind;
        put(out, around, strlen(around));
        p++;
    }
}

void drps_value_bad(struct drps_values *v, const char *fmt, ...)
{
    struct text format = {.n = 0};
    char text[sizeof(v->err->text)];
    va_list ap;
    if (v->err->code) return;
    show_names(v, fmt, &format);
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), format.p, ap); /* a cut message is still a message */
    va_end(ap);
    (void)drps_err_set(v->err, DRPS_E_CONFIG, "%s", text); /* the caller looks at it */
}

/* ---- Numbers ---- */

/* Returns the decimal power of a count's suffix. *end moves past it. */
static uint64_t count_unit(const char **end)
{
    static const char letters[] = "kmgt";
    uint64_t unit = 1;
    for (const char *l = letters; *l; l++) {
        unit *= 1000;
        if (**end == *l || **end == *l - 'a' + 'A') {
            (*end)++;
            return unit;
        }
    }
    return 1;
}

int drps_count_parse(const char *text, uint64_t *count_out, struct drps_err *err)
{
    const char *p = text;
    uint64_t whole = 0;
    uint64_t part = 0;  /* digits after the point, as a number */
    uint64_t scale = 1; /* 10 ^ their number */
    int digits = 0;

    *count_out = 0;
    for (; *p >= '0' && *p <= '9'; p++, digits++)
        if (__builtin_mul_overflow(whole, 10u, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole))
            goto too_large;
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++, digits++) {
            if (scale >= 1000000000000u) goto bad;
            part = part * 10 + (uint64_t)(*p - '0');
            scale *= 10;
        }
    if (!digits) goto bad;
    uint64_t unit = count_unit(&p);
    if (*p) goto bad;
    unsigned __int128 count =
        (unsigned __int128)whole * unit + (unsigned __int128)part * unit / scale;
    if ((unsigned __int128)part * unit % scale) goto bad; /* half a thing */
    if (count > UINT64_MAX) goto too_large;
    *count_out = (uint64_t)count;
    return 0;
bad:
    return drps_err_set(err, -EINVAL, "'%s' is not a count (examples: 1500, 4M, 1.5G; K is 1000)",
                        text);
too_large:
    return drps_err_set(err, -EINVAL, "'%s' is too large a count", text);
}

uint64_t drps_value_count(struct drps_values *v, const char *text, uint64_t min, uint64_t max)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t n;
    if (drps_count_parse(text, &n, &err) < 0)
        drps_value_bad(v, "%s", err.text);
    else if (n >= min && n <= max)
        return n;
    else if (max == UINT64_MAX)
        drps_value_bad(v, "'%s' is out of range: at least %ju", text, (uintmax_t)min);
    else
        drps_value_bad(v, "'%s' is out of range: from %ju to %ju", text, (uintmax_t)min,
                       (uintmax_t)max);
    return min;
}

uint64_t drps_value_size(struct drps_values *v, const char *text, uint64_t min, uint64_t max)
{
    struct drps_err err = DRPS_ERR_INIT;
    char lo[32], hi[32];
    uint64_t n;
    if (drps_size_parse(text, &n, &err) < 0) {
        drps_value_bad(v, "%s", err.text);
        return min;
    }
    if (n >= min && n <= max) return n;
    drps_size_format(min, lo, sizeof(lo));
    if (max >= INT64_MAX)
        drps_value_bad(v, "'%s' is out of range: at least %s", text, lo);
    else
        drps_value_bad(v, "'%s' is out of range: from %s to %s", text, lo,
                       drps_size_format(max, hi, sizeof(hi)));
    return min;
}

/* The text without an ending; 1: it had that. */
static int cut_ending(char *text, const char *ending)
{
    const size_t n = strlen(text), m = strlen(ending);
    if (n < m || strcasecmp(text + n - m, ending) != 0) return 0;
    text[n - m] = '\0';
    return 1;
}

uint64_t drps_value_speed(struct drps_values *v, const char *text)
{
    char number[64];
    uint64_t bits = 0;
    if (snprintf(number, sizeof(number), "%s", text) >= (int)sizeof(number)) {
        drps_value_bad(v, "'%s' is too long", text);
        return 1;
    }
    (void)cut_ending(number, "/s"); /* either may be left out */
    (void)cut_ending(number, "bit");
    if (drps_count_parse(number, &bits, NULL) == 0 && bits) return bits;
    drps_value_bad(v, "'%s' is not the speed of a link (examples: 1Gbit, 100Mbit)", text);
    return 1;
}

double drps_value_real(struct drps_values *v, const char *text, double min, double max)
{
    char *end;
    const double x = strtod(text, &end);
    if (end == text || *end || !isfinite(x))
        drps_value_bad(v, "'%s' is not a number (example: 0.05)", text);
    else if (x >= min && x <= max)
        return x;
    else if (min > 0 && min <= DBL_MIN && max >= DBL_MAX)
        drps_value_bad(v, "'%s' is out of range: above 0", text);
    else if (min > 0 && min <= DBL_MIN)
        drps_value_bad(v, "'%s' is out of range: above 0, up to %g", text, max);
    else if (max >= DBL_MAX)
        drps_value_bad(v, "'%s' is out of range: at least %g", text, min);
    else
        drps_value_bad(v, "'%s' is out of range: from %g to %g", text, min, max);
    return min;
}

double drps_value_share_to(struct drps_values *v, const char *text, double most)
{
    char *end;
    double x = strtod(text, &end);
    if (end != text && *end == '%') {
        x /= 100;
        end++;
    }
    if (end == text || *end || !isfinite(x))
        drps_value_bad(v, "'%s' is not a share (examples: 0.1, 10%%)", text);
    else if (x >= 0 && x <= most)
        return x;
    else
        drps_value_bad(v, "'%s' is out of range: from 0 to %g, or 0%% to %g%%", text, most,
                       100 * most);
    return 0;
}

double drps_value_share(struct drps_values *v, const char *text)
{
    return drps_value_share_to(v, text, 1);
}

/* ---- Names ---- */

char *drps_value_part(struct drps_values *v, const char **list_io, char part[DRPS_VALUE_PART_BYTES])
{
    const char *list = *list_io;
    if (!list) return NULL;
    const size_t n = strcspn(list, ",");
    *list_io = list[n] ? list + n + 1 : NULL;
    if (n >= DRPS_VALUE_PART_BYTES) {
        drps_value_bad(v, "'%s' is too long", list);
        return NULL;
    }
    memcpy(part, list, n);
    part[n] = '\0';
    return part;
}

int drps_truth(const char *text)
{
    static const char *const words[][2] = {
        {"no", "yes"}, {"false", "true"}, {"off", "on"}, {"0", "1"}};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        for (int v = 0; v < 2; v++)
            if (!strcasecmp(text, words[i][v])) return v;
    return -1;
}

size_t drps_value_choice(struct drps_values *v, const char *text, const char *const *names)
{
    char list[600] = "";
    size_t used = 0;
    for (size_t i = 0; names[i]; i++) {
        if (!strcmp(text, names[i])) return i;
        int n = snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", names[i]);
        if (n > 0 && used + (size_t)n < sizeof(list)) used += (size_t)n;
    }
    drps_value_bad(v, "'%s' is not one of: %s", text, list);
    return 0;
}

int drps_value_take(struct drps_values *v, const struct drps_value_plain *plain, size_t n, int key,
                    const char *text)
{
    for (size_t i = 0; i < n; i++) {
        const struct drps_value_plain *p = &plain[i];
        if (p->key != key) continue;
        if (p->flag)
            *p->flag = 1;
        else
            *p->text = p->names ? p->names[drps_value_choice(v, text, p->names)] : text;
        return 1;
    }
    return 0;
}

void drps_value_add(struct drps_values *v, struct drps_value_list *list, const char *text)
{
    if (drps_array_reserve(&list->texts, &list->cap, list->n + 1, sizeof(*list->texts)))
        drps_value_bad(v, "no memory for %zu values", list->n + 1);
    else
        list->texts[list->n++] = text;
}

void drps_value_list_free(struct drps_value_list *list)
{
    free(list->texts);
    *list = (struct drps_value_list){0};
}
