/* Prometheus's text, taken apart where it lies. What it says comes from whoever wrote it: only
 * whole lines count, and nothing in them reaches the terminal as it is. */
#include "tools/top/readings.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

/* ---- One line ---- */

/* A label's value at `*at`, behind its quote: what is escaped is put right in place. Returns it,
 * and sets *at behind the closing quote; NULL: there is none. */
static char *take_quoted(char **at)
{
    char *begin = *at, *to = begin;
    for (char *from = begin; *from; from++) {
        if (*from == '"') {
            *at = from + 1;
            *to = '\0';
            return begin;
        }
        if (*from == '\\' && from[1]) from++;
        *to++ = isprint((unsigned char)*from) ? *from : '?';
    }
    return NULL;
}

/* The labels, behind their bracket, which ends where they do. Returns what follows; NULL: they are
 * broken. */
static char *take_labels(char *at, struct reading *out, uint32_t *rank)
{
    while (*at && *at != '}') {
        char *name = at;
        at = strchr(at, '=');
        if (!at || at[1] != '"') return NULL;
        *at = '\0';
        at += 2;
        const char *value = take_quoted(&at);
        if (!value) return NULL;
        if (strcmp(name, "rank") == 0)
            *rank = (uint32_t)strtoul(value, NULL, 10);
        else if (strcmp(name, "le") == 0)
            out->le = strtod(value, NULL);
        else
            out->label = value;
        if (*at == ',') at++;
    }
    return *at ? at + 1 : NULL;
}

static int is_name(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_') return 0;
    return n > 0;
}

/* 1: the line is a number. */
static int take_line(char *line, struct reading *out, uint32_t *rank)
{
    const size_t n = strcspn(line, "{ ");
    *out = (struct reading){.name = line, .label = "", .le = NAN};
    if (!line[n] || !is_name(line, n)) return 0;
    char *at = line + n + 1;
    if (line[n] == '{') at = take_labels(at, out, rank);
    line[n] = '\0';
    if (!at) return 0;
    char *end;
    out->value = strtod(at, &end);
    return end != at;
}

/* ---- All lines ---- */

int readings_parse(char *text, double at, struct readings *out, struct drps_err *err)
{
    uint32_t rank = 0;
    int is_ours = 0;
    *out = (struct readings){.text = text, .at = at};
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        if (!next) break; /* it may be cut off */
        struct reading one;
        if (*line == '#' || !take_line(line, &one, &rank)) continue;
        if (drps_array_reserve(&out->list, &out->cap, out->n + 1, sizeof(*out->list))) {
            readings_free(out);
            return drps_err_set(err, -ENOMEM, "no memory for numbers");
        }
        if (!out->n) out->rank = rank;
        is_ours |= strncmp(one.name, "drps_", 5) == 0;
        out->list[out->n++] = one;
    }
    if (is_ours) return 0;
    readings_free(out);
    return drps_err_set(err, DRPS_E_FORMAT, "these are no numbers of drps");
}

void readings_free(struct readings *r)
{
    free(r->text);
    free(r->list);
    *r = (struct readings){0};
}

/* ---- Asking ---- */

double readings_get(const struct readings *r, const char *name, const char *label)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->list[i].name, name) == 0 && strcmp(r->list[i].label, label) == 0)
            return r->list[i].value;
    return NAN;
}

const char *readings_which(const struct readings *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->list[i].value > 0 && strcmp(r->list[i].name, name) == 0) return r->list[i].label;
    return "";
}

double readings_rate(const struct readings *before, const struct readings *now, const char *name,
                     const char *label)
{
    const double grown = readings_get(now, name, label) - readings_get(before, name, label);
    const double seconds = now->at - before->at;
    return seconds > 0 && grown >= 0 ? grown / seconds : NAN;
}

static double bucket_of(const struct readings *r, const char *name, const char *label, double le)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->list[i].le >= le && strcmp(r->list[i].name, name) == 0 &&
            strcmp(r->list[i].label, label) == 0)
            return r->list[i].value;
    return 0;
}

/* Buckets come in order, each with those below it. */
double readings_quantile(const struct readings *before, const struct readings *now,
                         const char *name, const char *label, double q)
{
    const double all =
        bucket_of(now, name, label, INFINITY) - bucket_of(before, name, label, INFINITY);
    if (!(all > 0)) return NAN;
    for (size_t i = 0; i < now->n; i++) {
        const struct reading *b = &now->list[i];
        if (isnan(b->le) || strcmp(b->name, name) != 0 || strcmp(b->label, label) != 0) continue;
        if (b->value - bucket_of(before, name, label, b->le) >= q * all) return b->le;
    }
    return NAN;
}
