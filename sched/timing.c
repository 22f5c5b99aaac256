/* Iteration times from a model's formula, or from the lines of a trace; drps_timing.h has both. */
#include "sched/drps_timing.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"

enum { TRACE_MAX = 64 << 20 };
#define SECONDS_MAX 1e6
#define NS_MAX 1e18 /* the tail has no end, a uint64_t has */

enum model { HOMOGENEOUS, STRAGGLER, PAUSES, TAIL };
const char *const drps_timing_models[] = {"homogeneous", "straggler", "pauses", "tail", NULL};

struct drps_timing {
    enum model model; /* unless there are lines */
    double alpha;     /* of the tail */
    double mean_s;
    uint64_t seed;
    double *seconds; /* own: line after line */
    size_t *first;   /* own: [lines + 1] */
    size_t n, n_cap, lines, lines_cap;
};

/* ---- Models ---- */

/* The model whose name ends at `end`; -1: there is none. *alpha_out: of "tail=ALPHA". */
static int find_model(const char *name, const char *end, double *alpha_out)
{
    char *after;
    *alpha_out = 2;
    if (strncmp(name, "tail=", 5) == 0) {
        *alpha_out = strtod(name + 5, &after);
        return after == end && *alpha_out > 1 && *alpha_out <= 100 ? TAIL : -1;
    }
    const size_t n = (size_t)(end - name);
    for (int m = 0; drps_timing_models[m]; m++)
        if (strlen(drps_timing_models[m]) == n && memcmp(drps_timing_models[m], name, n) == 0)
            return m;
    return -1;
}

/* Parse "SECONDS[:SEED]". */
static int parse_model(struct drps_timing *t, const char *spec, const char *numbers,
                       struct drps_err *err)
{
    char *end;
    t->mean_s = strtod(numbers, &end);
    const int mean_ok = end != numbers && t->mean_s > 0 && t->mean_s <= SECONDS_MAX;
    const char *seed = *end == ':' ? end + 1 : NULL;
    t->seed = 1;
    errno = 0;
    if (seed) t->seed = strtoull(seed, &end, 10);
    if (mean_ok && !*end && !(seed && (end == seed || *seed == '-' || errno))) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "'%s': expected MODEL:SECONDS[:SEED], for instance %.*s:0.03:1; seconds "
                        "above 0 and at most 1e6, the seed a whole number",
                        spec, (int)(numbers - spec) - 1, spec);
}

static double model_s(const struct drps_timing *t, unsigned worker, uint64_t i)
{
    const uint64_t key = t->seed * 1000003 + worker;
    const double u = drps_unit_double(drps_rng_at(key, 2 * i)),
                 v = drps_unit_double(drps_rng_at(key, 2 * i + 1));
    const double x = .95 + .1 * u;
    switch (t->model) {
    case STRAGGLER:
        return worker == 0 ? 3 * x : x;
    case PAUSES:
        return v < .04 ? x * (5 + v / .04 * 5) : x;
    case TAIL:
        return (t->alpha - 1) / t->alpha * pow(1 - u, -1 / t->alpha); /* of mean 1 */
    case HOMOGENEOUS:
        break;
    }
    return x;
}

/* ---- Traces ---- */

static int add(struct drps_timing *t, double seconds, int starts_line, struct drps_err *err)
{
    if (drps_array_reserve(&t->seconds, &t->n_cap, t->n + 1, sizeof(*t->seconds)) ||
        drps_array_reserve(&t->first, &t->lines_cap, t->lines + 2, sizeof(*t->first)))
        return drps_err_set(err, -ENOMEM, "no memory for a trace of %zu times", t->n);
    if (starts_line) t->first[t->lines++] = t->n;
    t->seconds[t->n++] = seconds;
    t->first[t->lines] = t->n;
    return 0;
}

static int parse_line(struct drps_timing *t, const char *line, const char *path, size_t number,
                      struct drps_err *err)
{
    static const char blanks[] = " \t\r";
    int starts = 1;
    for (const char *at = line + strspn(line, blanks); *at; starts = 0) {
        char *end;
        const double seconds = strtod(at, &end);
        if (end == at || (*end && !strchr(blanks, *end)) ||
            !(seconds > 0 && seconds <= SECONDS_MAX))
            return drps_err_set(err, DRPS_E_FORMAT,
                                "%s:%zu: '%.*s' at column %td: expected seconds, above 0 and at "
                                "most 1e6, with blanks between them",
                                path, number, (int)strcspn(at, blanks), at, at - line + 1);
        int rc = add(t, seconds, starts, err);
        if (rc < 0) return rc;
        at = end + strspn(end, blanks);
    }
    return 0;
}

static int parse_trace(struct drps_timing *t, char *text, const char *path, struct drps_err *err)
{
    size_t number = 0;
    int rc = 0;
    for (char *line = text; line && rc == 0;) {
        char *end = strchr(line, '\n');
        if (end) *end++ = '\0';
        number++;
        if (*line != '#') rc = parse_line(t, line, path, number, err);
        line = end;
    }
    if (rc == 0 && t->lines == 0)
        rc = drps_err_set(err, DRPS_E_FORMAT,
                          "%s: no times: expected a line of seconds for every worker", path);
    return rc;
}

static int read_trace(struct drps_timing *t, const struct drps_io *io, const char *path,
                      struct drps_err *err)
{
    char *text;
    size_t n;
    int rc = drps_io_read_text(io, path, TRACE_MAX, &text, &n, err);
    if (rc == -ENOENT)
        (void)drps_err_context(err, "neither homogeneous, straggler, pauses or tail with :SECONDS "
                                    "after it nor a trace");
    if (rc < 0) return rc;
    rc = parse_trace(t, text, path, err);
    free(text);
    return rc;
}

/* ---- Both ---- */

int drps_timing_open(const struct drps_io *io, const char *spec, struct drps_timing **timing_out,
                     struct drps_err *err)
{
    *timing_out = NULL;
    struct drps_timing *t = calloc(1, sizeof(*t));
    if (!t) return drps_err_set(err, -ENOMEM, "no memory for iteration times");
    const char *colon = strchr(spec, ':');
    const int model = colon ? find_model(spec, colon, &t->alpha) : -1;
    if (model >= 0) t->model = (enum model)model;
    int rc = model >= 0 ? parse_model(t, spec, colon + 1, err) : read_trace(t, io, spec, err);
    if (rc < 0) {
        drps_timing_close(t);
        return rc;
    }
    *timing_out = t;
    return 0;
}

void drps_timing_close(struct drps_timing *t)
{
    if (!t) return;
    free(t->seconds);
    free(t->first);
    free(t);
}

uint64_t drps_timing_ns(const struct drps_timing *t, unsigned worker, uint64_t i)
{
    if (t->lines == 0) return (uint64_t)fmin(model_s(t, worker, i) * t->mean_s * 1e9, NS_MAX);
    const size_t line = worker % t->lines, n = t->first[line + 1] - t->first[line];
    return (uint64_t)(t->seconds[t->first[line] + i % n] * 1e9);
}

uint64_t drps_timing_mean_ns(const struct drps_timing *t)
{
    double sum = t->lines == 0 ? t->mean_s : 0;
    for (size_t i = 0; i < t->n; i++)
        sum += t->seconds[i] / (double)t->n;
    return (uint64_t)(sum * 1e9);
}
