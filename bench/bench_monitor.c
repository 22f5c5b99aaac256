/*
 * What numbers to watch cost a run of training: one run, with them or without.
 *
 *   bench_monitor PLAN FOLDER EPOCHS STORE MEMORY_MIB [PORT [ASKS]]      ASKS a second; default: 1
 *
 * With PORT, the numbers are written to FOLDER/run.prom and to the folder that the run works in,
 * and served at PORT of this machine; a thread asks for them, as Prometheus would.
 * Without it nobody watches. Prints seconds of the clock and of the processor, which of all threads
 * but the one that asks, and the content of the model, which is the same with and without.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/drps_clock.h"
#include "engine/drps_engine.h"

enum { ARGUMENTS = 6, PATH_BYTES = 512, MIB = 1 << 20, SECOND_NS = 1000000000, LOOK_US = 2000 };

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_monitor: %s\n", what);
    exit(1);
}

/* ---- Who asks ---- */

struct asker {
    uint16_t port;
    uint64_t every_ns;
    atomic_int stop;
    double cpu_seconds;
    unsigned answers;
    pthread_t thread;
};

/* One request. Returns the bytes of the answer; 0: nobody listens yet. */
static size_t ask(uint16_t port)
{
    static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    char piece[1 << 16];
    size_t bytes = 0;
    ssize_t n;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) die("no socket");
    if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 &&
        send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) > 0)
        while ((n = recv(fd, piece, sizeof(piece), 0)) > 0)
            bytes += (size_t)n;
    (void)close(fd);
    return bytes;
}

static void *ask_again(void *arg)
{
    struct asker *a = arg;
    struct timespec cpu;
    uint64_t at = drps_clock_ns();
    while (!atomic_load(&a->stop)) {
        a->answers += ask(a->port) > 0;
        at += a->every_ns;
        while (!atomic_load(&a->stop) && drps_clock_ns() < at)
            (void)usleep(LOOK_US);
    }
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    a->cpu_seconds = (double)cpu.tv_sec + (double)cpu.tv_nsec * 1e-9;
    return NULL;
}

/* ---- The run ---- */

static double cpu_seconds(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u)) die("no times");
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void train(const struct drps_plan *plan, struct drps_train_options *o, struct asker *a)
{
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    if (a->port && pthread_create(&a->thread, NULL, ask_again, a)) die("no thread");
    const uint64_t start = drps_clock_ns();
    const double cpu = cpu_seconds();
    if (drps_train_run(plan, o, &r, &err)) die(err.text);
    const double seconds = drps_seconds_since(start);
    const double spent = cpu_seconds() - cpu;
    atomic_store(&a->stop, 1);
    if (a->port) (void)pthread_join(a->thread, NULL);
    if (a->port && !a->answers) die("nobody has answered");
    printf("%.3f %.3f %016llx %u\n", seconds, spent - a->cpu_seconds, (unsigned long long)r.content,
           a->answers);
    drps_train_result_free(&r);
}

int main(int argc, char **argv)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan *plan;
    char model[PATH_BYTES], file[PATH_BYTES];
    struct asker a = {0};
    if (argc < ARGUMENTS || argc > ARGUMENTS + 2)
        die("PLAN FOLDER EPOCHS STORE MEMORY_MIB [PORT [ASKS]]");
    if (snprintf(model, sizeof(model), "%s/model", argv[2]) >= PATH_BYTES) die("a long name");
    if (snprintf(file, sizeof(file), "%s/run.prom", argv[2]) >= PATH_BYTES) die("a long name");
    struct drps_train_options o = {.model_path = model,
                                   .replace = 1,
                                   .epochs = strtoull(argv[3], NULL, 10),
                                   .store = argv[4],
                                   .memory_bytes = strtoull(argv[5], NULL, 10) * MIB,
                                   .checkpoint_every = {.unit = DRPS_CHECKPOINT_NEVER}};
    if (argc > ARGUMENTS) {
        const unsigned long asks = argc > ARGUMENTS + 1 ? strtoul(argv[7], NULL, 10) : 1;
        if (!asks || asks > SECOND_NS) die("ASKS: 1 or more");
        a.port = (uint16_t)strtoul(argv[6], NULL, 10);
        a.every_ns = SECOND_NS / asks;
        o.metrics = (struct drps_monitor_options){.file = file, .port = a.port, .in_folder = 1};
    }
    if (drps_plan_open(drps_io_os(), argv[1], &plan, &err)) die(err.text);
    train(plan, &o, &a);
    drps_plan_close(plan);
    return 0;
}
