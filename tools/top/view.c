/* The screen from its top to its bottom: a function for each group of lines. What nobody knows is
 * shown as "-". Numbers of all ranks are added up; the last lines have a rank each. */
#include "tools/top/view.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_size.h"
#include "tools/drps_progress.h"

enum { TEXT = 40, BAR = 20, CURVE_MOST = 8, RANKS_LEAST = 4, INDENT = 10 };

#define MOST 1e18 /* of what is counted: more is no number of a job */

/* ---- Texts ---- */

static void put(struct view *v, enum view_style style, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void put(struct view *v, enum view_style style, const char *fmt, ...)
{
    va_list args;
    if (v->n == v->lines || v->n == VIEW_LINES) return;
    va_start(args, fmt);
    (void)vsnprintf(v->text[v->n], v->columns + 1, fmt, args); /* cut on purpose */
    va_end(args);
    v->style[v->n++] = style;
}

static const char *size(double bytes, char text[TEXT])
{
    if (!(bytes >= 0 && bytes < MOST)) return "-";
    return drps_size_format((uint64_t)bytes, text, TEXT);
}

static const char *count(double n, char text[TEXT])
{
    if (!(n >= 0 && n < MOST)) return "-";
    return drps_count_format((uint64_t)(n + 0.5), text);
}

static const char *percent(double share, char text[TEXT])
{
    (void)snprintf(text, TEXT, isnan(share) ? "-" : "%.1f %%", 100 * share);
    return text;
}

static const char *loss(double value, char text[TEXT])
{
    (void)snprintf(text, TEXT, isnan(value) ? "-" : "%.4g", value);
    return text;
}

static const char *latency(double seconds, char text[TEXT])
{
    if (isnan(seconds)) return "99 % within -";
    if (isinf(seconds)) return "over 1 % take > 33 ms"; /* the end of the last bucket but one */
    (void)snprintf(text, TEXT, seconds < 1e-3 ? "99 %% within %.0f us" : "99 %% within %.0f ms",
                   seconds * (seconds < 1e-3 ? 1e6 : 1e3));
    return text;
}

static const char *bar(double share, char text[BAR + 1])
{
    const double inside = share > 0 ? (share < 1 ? share : 1) : 0;
    const size_t full = (size_t)(inside * BAR + 0.5);
    memset(text, '.', BAR);
    memset(text, '#', full);
    text[BAR] = '\0';
    return text;
}

/* ---- Numbers of all ranks ---- */

static int is_shown(const struct source *k)
{
    return k->past_n > 0;
}

static double get(const struct source *k, const char *name, const char *label)
{
    return readings_get(source_now(k), name, label);
}

static double rate(const struct source *k, const char *name, const char *label)
{
    return readings_rate(source_before(k), source_now(k), name, label);
}

/* The sum over ranks that have it; NaN: none has. */
static double sum_of(const struct sources *s,
                     double (*of)(const struct source *, const char *, const char *),
                     const char *name, const char *label)
{
    double sum = NAN;
    for (size_t i = 0; i < s->n; i++) {
        const double one = is_shown(&s->list[i]) ? of(&s->list[i], name, label) : NAN;
        if (!isnan(one)) sum = isnan(sum) ? one : sum + one;
    }
    return sum;
}

/* The first rank that has the number. */
static double first_of(const struct sources *s, const char *name)
{
    double value = NAN;
    for (size_t i = 0; i < s->n && isnan(value); i++)
        if (is_shown(&s->list[i])) value = get(&s->list[i], name, "");
    return value;
}

static const struct source *first(const struct sources *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (is_shown(&s->list[i])) return &s->list[i];
    return NULL;
}

void view_losses(const struct sources *s, double *loss_out, double *test_out)
{
    *loss_out = first_of(s, "drps_train_loss");
    *test_out = first_of(s, "drps_train_test_loss");
}

/* ---- Training ---- */

static double seconds_left(const struct sources *s)
{
    const struct source *k = first(s);
    const double left = get(k, "drps_train_steps_left", "");
    return left > 0 ? left / rate(k, "drps_train_steps_total", "") : left;
}

static void put_epoch(struct view *v, const struct sources *s)
{
    char time[DRPS_PROGRESS_TIME], text[BAR + 1], all[TEXT], losses[3][TEXT];
    const double done = first_of(s, "drps_train_epoch_steps_done");
    const double steps = first_of(s, "drps_train_epoch_steps");
    put(v, VIEW_PLAIN, "epoch     %.0f of %.0f [%s] %s; %s left",
        fmax(first_of(s, "drps_train_epoch"), 0), fmax(first_of(s, "drps_train_epochs"), 0),
        bar(done / steps, text), readings_which(source_now(first(s)), "drps_train_phase"),
        drps_progress_time(seconds_left(s), time));
    put(v, VIEW_PLAIN, "samples   %s a second; rate %s",
        count(sum_of(s, rate, "drps_train_samples_total", ""), all),
        loss(first_of(s, "drps_train_learning_rate"), losses[0]));
    put(v, VIEW_PLAIN, "loss      %s now, %s last epoch, %s on test samples",
        loss(first_of(s, "drps_train_loss"), losses[0]),
        loss(first_of(s, "drps_train_epoch_loss"), losses[1]),
        loss(first_of(s, "drps_train_test_loss"), losses[2]));
}

/* The losses of the first line and the last stand before them. */
static void put_curve(struct view *v, const struct curve *c, size_t height)
{
    char lines[CURVE_MOST][CURVE_WIDTH_MOST + 1];
    double least, most;
    if (v->columns < VIEW_LEAST_COLUMNS) return;
    if (!curve_draw(c, v->columns - 12, height, lines, &least, &most)) return;
    for (size_t y = 0; y < height; y++) {
        char label[TEXT] = "";
        if (y == 0 || y + 1 == height) (void)loss(y ? least : most, label);
        put(v, VIEW_CURVE, "%9.9s |%s", label, lines[y]);
    }
}

/* The three largest parts of the first rank's memory. */
static void put_parts(struct view *v, const struct readings *r)
{
    const struct reading *largest[3] = {NULL};
    char text[TEXT], line[VIEW_COLUMNS] = "";
    for (size_t i = 0; i < r->n; i++) {
        const struct reading *one = &r->list[i];
        if (strcmp(one->name, "drps_memory_bytes") != 0) continue;
        for (size_t k = 0; k < 3; k++) {
            if (largest[k] && largest[k]->value >= one->value) continue;
            const struct reading *less = largest[k];
            largest[k] = one;
            one = less;
            if (!one) break;
        }
    }
    for (size_t k = 0; k < 3 && largest[k]; k++) {
        const size_t used = strlen(line);
        const int more = snprintf(line + used, sizeof(line) - used, "%s%s %s", k ? ", " : "",
                                  largest[k]->label, size(largest[k]->value, text));
        if (used + (size_t)more + INDENT > v->columns) line[used] = '\0'; /* there is no room */
    }
    if (*line) put(v, VIEW_DIM, "          %s", line);
}

static void put_memory(struct view *v, const struct sources *s)
{
    char text[2][TEXT], full[BAR + 1];
    const double used = sum_of(s, get, "process_resident_memory_bytes", "");
    const double limit = sum_of(s, get, "drps_memory_limit_bytes", "");
    put(v, VIEW_PLAIN, "memory    %s of %s [%s]", size(used, text[0]), size(limit, text[1]),
        bar(used / limit, full));
    put_parts(v, source_now(first(s)));
}

static void put_disk(struct view *v, const struct sources *s, const char *op, const char *before)
{
    char text[4][TEXT];
    const struct source *k = first(s);
    put(v, VIEW_PLAIN, "%-9.9s %s/s %s, %s requests/s, %s; %s in all", before,
        size(sum_of(s, rate, "drps_store_bytes_total", op), text[0]),
        strcmp(op, "read") == 0 ? "read" : "written",
        count(sum_of(s, rate, "drps_store_requests_total", op), text[1]),
        latency(readings_quantile(source_before(k), source_now(k),
                                  "drps_store_request_seconds_bucket", op, 0.99),
                text[2]),
        size(sum_of(s, get, "drps_store_bytes_total", op), text[3]));
}

static void put_waiting(struct view *v, const struct sources *s)
{
    char text[3][TEXT];
    const struct source *k = first(s);
    const double windows = get(k, "drps_store_windows_ahead", "");
    const double steps = get(k, "drps_store_steps_ahead", "");
    const char *const name = "drps_train_waiting_seconds_total";
    put(v, VIEW_PLAIN, "waiting   %s for rows, %s for the plan, %s for ranks",
        percent(rate(k, name, "rows"), text[0]), percent(rate(k, name, "plan"), text[1]),
        percent(rate(k, name, "ranks"), text[2]));
    if (steps > 0)
        put(v, VIEW_PLAIN, "ahead     %.0f batch%s whose rows are in memory", steps,
            steps < 2 ? "" : "es");
    else if (!isnan(windows))
        put(v, VIEW_PLAIN, "ahead     %.0f window%s open; checkpoints: %.0f", windows,
            windows > 0 && windows < 2 ? " is" : "s are", get(k, "drps_checkpoints_total", ""));
}

/* What a rank sends a second to all others, and to whom most. */
struct links {
    double bytes, messages, most;
    const char *to;
};

static void add_rate(double *sum, double rate)
{
    if (!isnan(rate)) *sum = isnan(*sum) ? rate : *sum + rate;
}

static struct links links_of(const struct source *k)
{
    const struct readings *now = source_now(k);
    struct links all = {NAN, NAN, NAN, ""};
    for (size_t i = 0; i < now->n; i++) {
        const char *to = now->list[i].label;
        if (strcmp(now->list[i].name, "drps_net_sent_bytes_total") != 0) continue;
        const double bytes = rate(k, now->list[i].name, to);
        add_rate(&all.bytes, bytes);
        add_rate(&all.messages, rate(k, "drps_net_sent_messages_total", to));
        if (isnan(bytes) || bytes <= all.most) continue;
        all.most = bytes;
        all.to = to;
    }
    return all;
}

static void put_links(struct view *v, const struct sources *s)
{
    char text[3][TEXT];
    struct links sum = {NAN, NAN, NAN, ""};
    uint32_t from = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (!is_shown(&s->list[i])) continue;
        const struct links one = links_of(&s->list[i]);
        add_rate(&sum.bytes, one.bytes);
        add_rate(&sum.messages, one.messages);
        if (isnan(one.most) || one.most <= sum.most) continue;
        sum.most = one.most;
        sum.to = one.to;
        from = source_now(&s->list[i])->rank;
    }
    if (isnan(sum.bytes)) return;
    put(v, VIEW_PLAIN, "links     %s/s, %s messages/s; most from %u to %s, %s/s",
        size(sum.bytes, text[0]), count(sum.messages, text[1]), from, sum.to,
        size(sum.most, text[2]));
}

static void put_rank(struct view *v, const struct source *k)
{
    char text[6][TEXT];
    const struct readings *now = source_now(k);
    const char *const waits = "drps_train_waiting_seconds_total";
    put(v, k->is_gone ? VIEW_DIM : VIEW_PLAIN, "%4u %11s %10s %8s %10s %10s/s %10s/s%s", now->rank,
        count(rate(k, "drps_train_samples_total", ""), text[0]),
        loss(get(k, "drps_train_loss", ""), text[1]),
        percent(rate(k, waits, "ranks") + rate(k, waits, "plan"), text[2]),
        size(get(k, "process_resident_memory_bytes", ""), text[3]),
        size(rate(k, "drps_store_bytes_total", "read"), text[4]), size(links_of(k).bytes, text[5]),
        k->is_gone ? " gone" : "");
}

/* As many ranks as there is room for. */
static void put_ranks(struct view *v, const struct sources *s)
{
    if (s->n < 2) return;
    put(v, VIEW_HEAD, "%4s %11s %10s %8s %10s %12s %12s", "rank", "samples/s", "loss", "waiting",
        "memory", "disk read", "sent");
    for (size_t i = 0; i < s->n; i++) {
        if (v->n + 2 == v->lines && i + 1 < s->n) {
            put(v, VIEW_DIM, "     and %zu more ranks", s->n - i);
            return;
        }
        if (is_shown(&s->list[i])) put_rank(v, &s->list[i]);
    }
}

/* What is left of the screen is the curve's, but for some ranks. */
static size_t curve_lines(const struct view *v, const struct sources *s)
{
    const size_t ranks = s->n < 2 ? 0 : s->n < RANKS_LEAST ? s->n + 2 : RANKS_LEAST + 2;
    const size_t others = 12 + ranks;
    const size_t left = v->lines > others ? v->lines - others : 0;
    return left < 3 ? 0 : left < CURVE_MOST ? left : CURVE_MOST;
}

static void draw_training(struct view *v, const struct sources *s, const struct curve *c)
{
    const char *store = readings_which(source_now(first(s)), "drps_train_store");
    put_epoch(v, s);
    put_curve(v, c, curve_lines(v, s));
    put_memory(v, s);
    put_disk(v, s, "read", *store ? store : "disk");
    put_disk(v, s, "write", "");
    put_waiting(v, s);
    put_links(v, s);
    put_ranks(v, s);
}

/* ---- drps-index ---- */

static void draw_index(struct view *v, const struct sources *s)
{
    const struct source *k = first(s);
    char text[4][TEXT], full[BAR + 1];
    const double read = get(k, "drps_index_input_bytes_total", "");
    const double all = get(k, "drps_index_input_size_bytes", "");
    const double done = get(k, "drps_index_phase_done", "");
    const double size_of = get(k, "drps_index_phase_size", "");
    const char *phase = readings_which(source_now(k), "drps_index_phase");
    put(v, VIEW_PLAIN, "phase     %s%s%s%s%s", *phase ? phase : "-", done > 0 ? ", " : "",
        done > 0 ? count(done, text[0]) : "", size_of > 0 ? " of " : "",
        size_of > 0 ? count(size_of, text[1]) : "");
    put(v, VIEW_PLAIN, "input     %s of %s [%s], %s/s", size(read, text[0]), size(all, text[1]),
        bar(read / all, full), size(rate(k, "drps_index_input_bytes_total", ""), text[2]));
    put(v, VIEW_PLAIN, "samples   %s, %s a second; %s lines",
        count(get(k, "drps_index_samples_total", ""), text[0]),
        count(rate(k, "drps_index_samples_total", ""), text[1]),
        count(get(k, "drps_index_lines_total", ""), text[2]));
    put_memory(v, s);
}

/* ---- All ---- */

static int is_index(const struct source *k)
{
    const struct readings *r = source_now(k);
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->list[i].name, "drps_index_phase") == 0) return 1;
    return 0;
}

static int has_ended(const struct source *k)
{
    return get(k, "drps_train_phase", "end") > 0;
}

/* What is not there any more is shown as it was at the look before: of a short job that may be its
 * first second. */
static const char *state_of(const struct sources *s)
{
    const struct source *k = first(s);
    if (!k) return "waiting for a job to begin";
    if (has_ended(k)) return "the job has ended";
    if (sources_alive(s)) return "";
    return sources_ending(s) ? "the job is about to end; below is what it showed before"
                             : "the job has ended; below is what it showed before";
}

void view_draw(struct view *v, const struct sources *s, const struct curve *c, const char *names)
{
    const struct source *k = first(s);
    v->n = 0;
    if (v->columns > VIEW_COLUMNS) v->columns = VIEW_COLUMNS;
    const char *state = state_of(s);
    put(v, VIEW_TITLE, "drps-top  %s%s%s", names, *state ? ": " : "", state);
    if (!k) return;
    put(v, VIEW_PLAIN, "%s", "");
    if (is_index(k))
        draw_index(v, s);
    else
        draw_training(v, s, c);
}
