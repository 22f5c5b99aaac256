/* Numbers as text: Prometheus's exposition format 0.0.4. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/monitor/monitor_internal.h"

#define EXACT 9007199254740992.0 /* whole numbers below it are themselves */

/* ---- One line ---- */

/* A text with escapes: backslashes and ends of lines, in labels quotes, too. */
static void put_text(FILE *out, const char *text, int quoted)
{
    for (; *text; text++) {
        if (*text == '\n')
            (void)fputs("\\n", out);
        else if (*text == '\\' || (*text == '"' && quoted))
            (void)fprintf(out, "\\%c", *text);
        else
            (void)fputc(*text, out);
    }
}

static void put_value(FILE *out, double value)
{
    if (isinf(value))
        (void)fputs(value > 0 ? "+Inf" : "-Inf", out);
    else if (fabs(value) < EXACT && value == trunc(value))
        (void)fprintf(out, "%.0f", value);
    else
        (void)fprintf(out, "%.10g", value);
}

static void put_head(FILE *out, const struct drps_monitor_metric *metric)
{
    static const char *const types[] = {[DRPS_MONITOR_COUNTER] = "counter",
                                        [DRPS_MONITOR_GAUGE] = "gauge",
                                        [DRPS_MONITOR_HISTOGRAM] = "histogram"};
    (void)fprintf(out, "# HELP %s ", metric->name);
    put_text(out, metric->help, 0);
    (void)fprintf(out, "\n# TYPE %s %s\n", metric->name, types[metric->type]);
}

/* Name and labels, up to the value. `upper` is that of a bucket; NULL: it is none. */
static void put_name(FILE *out, const struct drps_monitor *m,
                     const struct drps_monitor_metric *metric, const char *suffix,
                     const char *value, const double *upper)
{
    (void)fprintf(out, "%s%s{rank=\"%" PRIu32 "\"", metric->name, suffix, m->rank);
    if (value) {
        (void)fprintf(out, ",%s=\"", metric->label);
        put_text(out, value, 1);
        (void)fputc('"', out);
    }
    if (upper) {
        (void)fputs(",le=\"", out);
        if (isinf(*upper))
            (void)fputs("+Inf", out);
        else
            (void)fprintf(out, "%.9g", *upper);
        (void)fputc('"', out);
    }
    (void)fputs("} ", out);
}

static void put_number(FILE *out, const struct drps_monitor *m,
                       const struct drps_monitor_metric *metric, const char *value, double now)
{
    put_name(out, m, metric, "", value, NULL);
    put_value(out, now);
    (void)fputc('\n', out);
}

/* Buckets hold what those below them hold, too; the last one is all there is, so that the count is
 * right even while the histogram is set. */
static void put_histogram(FILE *out, const struct drps_monitor *m,
                          const struct drps_monitor_metric *metric,
                          struct drps_monitor_number *number)
{
    const double no_end = INFINITY;
    uint64_t n = 0;
    for (size_t i = 0; i < number->buckets; i++) {
        const int is_last = i + 1 == number->buckets;
        n += atomic_load_explicit(&number->counts[i], memory_order_relaxed);
        put_name(out, m, metric, "_bucket", number->value, is_last ? &no_end : &number->bounds[i]);
        (void)fprintf(out, "%" PRIu64 "\n", n);
    }
    put_name(out, m, metric, "_sum", number->value, NULL);
    put_value(out, atomic_load_explicit(&number->now, memory_order_relaxed));
    (void)fputc('\n', out);
    put_name(out, m, metric, "_count", number->value, NULL);
    (void)fprintf(out, "%" PRIu64 "\n", n);
}

/* ---- All numbers ---- */

/* A family is shown once one of its numbers is known. */
static void put_family(FILE *out, const struct drps_monitor *m, const struct family *f)
{
    int is_headed = 0;
    for (struct drps_monitor_number *number = f->first; number; number = number->next) {
        const double now = atomic_load_explicit(&number->now, memory_order_relaxed);
        if (isnan(now)) continue;
        if (!is_headed++) put_head(out, f->metric);
        if (number->buckets)
            put_histogram(out, m, f->metric, number);
        else
            put_number(out, m, f->metric, number->value, now);
    }
}

/* ---- What the system says of this process ---- */

static double resident_bytes(void)
{
    unsigned long long all, resident;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) return NAN;
    const int n = fscanf(f, "%llu %llu", &all, &resident);
    (void)fclose(f);
    return n == 2 ? (double)resident * (double)sysconf(_SC_PAGESIZE) : NAN;
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static double processor_seconds(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u)) return NAN;
    return seconds_of(u.ru_utime) + seconds_of(u.ru_stime);
}

/* The 22nd number of /proc/self/stat is the start in ticks since the machine's; the second one is a
 * name in brackets. */
static double start_seconds(void)
{
    struct timespec now, up;
    unsigned long long ticks;
    FILE *f = fopen("/proc/self/stat", "r");
    if (!f) return NAN;
    const int n = fscanf(f,
                         "%*d (%*[^)]) %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                         "%*s %*s %*s %*s %llu",
                         &ticks);
    (void)fclose(f);
    if (n != 1 || clock_gettime(CLOCK_REALTIME, &now) || clock_gettime(CLOCK_BOOTTIME, &up))
        return NAN;
    return (double)now.tv_sec - (double)up.tv_sec + (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/* The names are those of Prometheus's own clients. */
static void put_process(FILE *out, const struct drps_monitor *m)
{
    static const struct {
        struct drps_monitor_metric metric;
        double (*now)(void);
    } numbers[] = {
        {{"process_resident_memory_bytes", "Resident memory of the process.", NULL,
          DRPS_MONITOR_GAUGE},
         resident_bytes},
        {{"process_cpu_seconds_total", "Processor time of the process, of the user and the system.",
          NULL, DRPS_MONITOR_COUNTER},
         processor_seconds},
        {{"process_start_time_seconds", "When the process began, in seconds since 1970.", NULL,
          DRPS_MONITOR_GAUGE},
         start_seconds},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const double now = numbers[i].now();
        if (isnan(now)) continue;
        put_head(out, &numbers[i].metric);
        put_number(out, m, &numbers[i].metric, NULL, now);
    }
}

char *drps_monitor_render(struct drps_monitor *m, size_t *n_out)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, n_out);
    if (!out) return NULL;
    (void)pthread_mutex_lock(&m->lock);
    for (const struct family *f = m->first; f; f = f->next)
        put_family(out, m, f);
    (void)pthread_mutex_unlock(&m->lock);
    put_process(out, m);
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}
