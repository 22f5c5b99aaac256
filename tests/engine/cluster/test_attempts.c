/* Attempts: which ends are followed by another one, and when it is enough. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/cluster/drps_attempts.h"

enum { AGAIN = 75, MOST = 8 };

/* What each attempt does; it is in a process of its own, so what it counts lies in a shared page.
 */
struct script {
    struct step {
        int signal;      /* that kills it, or */
        int status;      /* with which it ends */
        uint64_t began;  /* it goes on from that checkpoint; 0: it begins anew */
        uint64_t newest; /* and writes that; 0: none */
    } steps[MOST];
};

struct page {
    int attempts, first, had_checkpoint; /* the last two: how many of the attempts said so */
    atomic_int stop;
    char said[2000]; /* by the log */
};

struct play {
    const struct script *script;
    struct page *page;
};

static int attempt(void *ctx, struct drps_attempt *a)
{
    const struct play *p = ctx;
    const struct step *s = &p->script->steps[p->page->attempts++];
    struct drps_err why = DRPS_ERR_INIT;
    p->page->first += drps_attempt_is_first(a);
    p->page->had_checkpoint += drps_attempt_has_checkpoint(a);
    if (s->began)
        drps_attempt_reached(
            a, &(struct drps_train_cut){.number = s->began, .epoch = 2, .step = 7, .resumed = 1});
    if (s->newest)
        drps_attempt_reached(a,
                             &(struct drps_train_cut){.number = s->newest, .epoch = 3, .step = 9});
    if (s->signal) (void)raise(s->signal);
    (void)drps_err_set(&why, DRPS_E_PEER, "rank %d is dead", p->page->attempts);
    drps_attempt_failed(a, &why);
    return s->status;
}

static void keep_said(void *ctx, enum drps_log_level level, const char *text)
{
    struct page *page = ctx;
    const size_t n = strlen(page->said);
    (void)level;
    (void)snprintf(page->said + n, sizeof(page->said) - n, "%s\n", text);
}

static void run(const struct script *script, struct page *page, int *status)
{
    struct play play = {script, page};
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_log log = {DRPS_LOG_INFO, keep_said, page};
    const struct drps_attempts_options o = {.name = "rank 0",
                                            .run = attempt,
                                            .ctx = &play,
                                            .again = AGAIN,
                                            .stop = &page->stop,
                                            .log = &log};
    if (drps_attempts_run(&o, status, &err) < 0) fail_msg("%s", err.text);
}

static struct page *page_new(void)
{
    struct page *page =
        mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    return page;
}

static void test_attempts(void **state)
{
    static const struct {
        const char *name;
        struct script script;
        int stop, attempts, status, had_checkpoint;
        const char *said;
    } cases[] = {
        {.name = "done at once", .attempts = 1, .said = ""},
        {.name = "an error that stays",
         .script = {{{.status = 1}}},
         .attempts = 1,
         .status = 1,
         .said = ""},
        {.name = "done at last",
         .script = {{{.status = AGAIN}, {.signal = SIGKILL, .newest = 1}, {.began = 1}}},
         .attempts = 3,
         .had_checkpoint = 1,
         .said = "rank 1 is dead: starting anew, from the beginning\n"
                 "rank 0 was killed by signal 9 (Killed): starting anew, from epoch 3 after 9 "
                 "batches\n"},
        {.name = "three come no further",
         .script = {{{.status = AGAIN, .newest = 4},
                     {.status = AGAIN, .began = 4},
                     {.status = AGAIN},
                     {.signal = SIGTERM, .began = 4}}},
         .attempts = 4,
         .status = AGAIN,
         .had_checkpoint = 3,
         .said = "rank 1 is dead: starting anew, from epoch 3 after 9 batches\n"
                 "rank 2 is dead: starting anew, from epoch 2 after 7 batches\n"
                 "rank 3 is dead: starting anew, from epoch 2 after 7 batches\n"
                 "rank 0 was killed by signal 15 (Terminated); three attempts in a row ended so, "
                 "without a new checkpoint\n"},
        {.name = "not in a row",
         .script = {{{.status = AGAIN},
                     {.status = AGAIN},
                     {.status = AGAIN, .newest = 1},
                     {.status = AGAIN, .began = 1},
                     {.status = AGAIN, .began = 1},
                     {.status = 0, .began = 1}}},
         .attempts = 6,
         .had_checkpoint = 3},
        {.name = "the newest one was damaged",
         .script = {{{.status = AGAIN, .newest = 5},
                     {.status = AGAIN, .began = 4},
                     {.status = AGAIN, .began = 4},
                     {.status = AGAIN, .began = 4}}},
         .attempts = 4,
         .status = AGAIN,
         .had_checkpoint = 3},
        {.name = "asked to end",
         .script = {{{.status = AGAIN, .newest = 1}}},
         .stop = 1,
         .attempts = 1,
         .status = AGAIN,
         .said = "rank 1 is dead\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct page *page = page_new();
        int status;
        atomic_store(&page->stop, cases[i].stop);
        run(&cases[i].script, page, &status);
        if (status != cases[i].status || page->attempts != cases[i].attempts || page->first != 1 ||
            page->had_checkpoint != cases[i].had_checkpoint)
            fail_msg("%s: %d attempts, %d first, %d with a checkpoint, status %d", cases[i].name,
                     page->attempts, page->first, page->had_checkpoint, status);
        if (cases[i].said && strcmp(page->said, cases[i].said) != 0)
            fail_msg("%s: %s", cases[i].name, page->said);
        (void)munmap(page, sizeof(*page));
    }
}

/* ---- What an attempt leaves ---- */

enum { LINGER_MS = 100 };

struct straggler {
    atomic_int attempts, gone, overlaps;
};

/* The first attempt leaves a process that takes its time to end. */
static int leave_a_process(void *ctx, struct drps_attempt *a)
{
    struct straggler *s = ctx;
    (void)a;
    if (atomic_fetch_add(&s->attempts, 1)) {
        atomic_store(&s->overlaps, !atomic_load(&s->gone));
        return 0;
    }
    if (fork() == 0) {
        (void)poll(NULL, 0, LINGER_MS);
        atomic_store(&s->gone, 1);
        _exit(0);
    }
    return raise(SIGKILL);
}

/* An attempt was killed: the next one begins when all of its processes have ended. */
static void test_attempts_do_not_overlap(void **state)
{
    static const atomic_int stop;
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_log log = {.level = DRPS_LOG_ERROR};
    int status;
    (void)state;
    struct straggler *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(s, MAP_FAILED);
    const struct drps_attempts_options o = {.name = "training",
                                            .run = leave_a_process,
                                            .ctx = s,
                                            .again = AGAIN,
                                            .stop = &stop,
                                            .log = &log};
    assert_int_equal(drps_attempts_run(&o, &status, &err), 0);
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(&s->attempts), 2);
    assert_int_equal(atomic_load(&s->overlaps), 0);
    (void)munmap(s, sizeof(*s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_attempts),
                                       cmocka_unit_test(test_attempts_do_not_overlap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
