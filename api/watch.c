/* Messages and progress of a run go to the program that watches it. */
#include "api/watch.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/drps_clock.h"

enum { TELL_NS = 100000000 };

static_assert(sizeof(atomic_int) == sizeof(int), "a program's flag is read as an atomic one");
static_assert((int)DRPS_LEVEL_ERROR == DRPS_LOG_ERROR && (int)DRPS_LEVEL_DETAIL == DRPS_LOG_DEBUG,
              "levels of messages are those of the log");

static void send_message(void *ctx, enum drps_log_level level, const char *text)
{
    const struct watch *w = ctx;
    if (w->given && w->given->message)
        w->given->message(w->given->ctx, (enum drps_level)level, text);
}

void watch_begin(struct watch *w, const struct drps_watch *given)
{
    *w = (struct watch){.given = given, .begin_ns = drps_clock_ns()};
    w->stop = given && given->stop ? (atomic_int *)given->stop : &w->own;
    w->log = (struct drps_log){.level = DRPS_LOG_INFO, .sink = send_message, .ctx = w};
}

void watch_answer(struct watch *w, int answer)
{
    if (answer) atomic_store_explicit(w->stop, 1, memory_order_relaxed);
}

void watch_progress(struct watch *w, struct drps_watch_progress *p)
{
    if (!w->given || !w->given->progress) return;
    const uint64_t now = drps_clock_ns();
    const int begins = !w->phase || strcmp(w->phase, p->phase) != 0;
    if (!begins && now - w->told_ns < TELL_NS) return;
    w->told_ns = now;
    w->phase = p->phase;
    p->seconds = drps_seconds_since(w->begin_ns);
    watch_answer(w, w->given->progress(w->given->ctx, p));
}
