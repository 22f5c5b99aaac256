/* A file that follows a monitor: a thread writes it each second. It is no part of what a job makes,
 * so it is never synced, and a write that fails ends nothing. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/drps_io.h"
#include "base/drps_thread.h"
#include "base/monitor/drps_monitor_out.h"

static const char ours[] = "# HELP drps_"; /* how such a file begins */

struct drps_monitor_file {
    struct drps_monitor *monitor;
    char *path, *next; /* own */
    pthread_mutex_t lock;
    pthread_cond_t news;
    int ends; /* by lock */
    int runs;
    pthread_t thread;
};

static int put(int fd, const char *text, size_t n)
{
    while (n) {
        const ssize_t wrote = write(fd, text, n);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return -errno;
        text += wrote;
        n -= (size_t)wrote;
    }
    return 0;
}

/* The file is always a new one: what has come to its name meanwhile may be a pipe, that nobody
 * reads, or another name of a file that is not ours. */
static int write_next(const struct drps_monitor_file *f, const char *text, size_t n)
{
    (void)unlink(f->next);
    const int fd = open(f->next, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return -errno;
    int rc = put(fd, text, n);
    if (close(fd) && rc == 0) rc = -errno;
    if (rc == 0 && rename(f->next, f->path)) rc = -errno;
    if (rc < 0) (void)unlink(f->next);
    return rc;
}

static int write_now(const struct drps_monitor_file *f, struct drps_err *err)
{
    size_t n;
    char *text = drps_monitor_render(f->monitor, &n);
    const int rc = text ? write_next(f, text, n) : -ENOMEM;
    free(text);
    if (rc == 0) return 0;
    return drps_err_set(err, rc, "%s cannot be written: %s", f->path, strerror(-rc));
}

static void *follow(void *arg)
{
    struct drps_monitor_file *f = arg;
    struct timespec at;
    drps_thread_serves();
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    (void)pthread_mutex_lock(&f->lock);
    do { /* at least once: the last state */
        at.tv_sec++;
        while (!f->ends && pthread_cond_timedwait(&f->news, &f->lock, &at) == 0)
            continue;
        (void)pthread_mutex_unlock(&f->lock);
        (void)write_now(f, NULL); /* it is written again soon */
        (void)pthread_mutex_lock(&f->lock);
    } while (!f->ends);
    (void)pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* Whether the name is free, or that of such a file. */
static int check_name(const char *path, struct drps_err *err)
{
    char begin[sizeof(ours)] = {0};
    struct stat st;
    if (lstat(path, &st)) return 0; /* writing it tells what else is wrong */
    if (S_ISREG(st.st_mode) && !st.st_size) return 0;
    const int fd = S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    const ssize_t n = fd < 0 ? 0 : read(fd, begin, sizeof(ours) - 1);
    drps_io_close(drps_io_os(), fd);
    if (n == sizeof(ours) - 1 && strcmp(begin, ours) == 0) return 0;
    return drps_err_set(err, -EEXIST,
                        "%s is there, and no file of metrics: it is not overwritten; give another "
                        "name",
                        path);
}

static int start(struct drps_monitor_file *f, struct drps_err *err)
{
    const int rc = pthread_create(&f->thread, NULL, follow, f);
    if (rc) return drps_err_set(err, -rc, "no thread to write %s: %s", f->path, strerror(rc));
    f->runs = 1;
    return 0;
}

int drps_monitor_file_open(struct drps_monitor *m, const char *path, struct drps_monitor_file **out,
                           struct drps_err *err)
{
    pthread_condattr_t steady;
    *out = NULL;
    struct drps_monitor_file *f = calloc(1, sizeof(*f));
    if (!f) return drps_err_set(err, -ENOMEM, "no memory to write %s", path);
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_condattr_init(&steady);
    (void)pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&f->news, &steady);
    (void)pthread_condattr_destroy(&steady);
    f->monitor = m;
    f->path = strdup(path);
    if (asprintf(&f->next, "%s.next", path) < 0) f->next = NULL;
    int rc = f->path && f->next ? 0 : drps_err_set(err, -ENOMEM, "no memory to write %s", path);
    if (rc == 0) rc = check_name(f->path, err);
    if (rc == 0) rc = check_name(f->next, err);
    if (rc == 0) rc = write_now(f, err);
    if (rc == 0) rc = start(f, err);
    if (rc < 0)
        drps_monitor_file_close(f, 0);
    else
        *out = f;
    return rc;
}

int drps_monitor_file_open_in(struct drps_monitor *m, const char *dir,
                              struct drps_monitor_file **out, struct drps_err *err)
{
    char *path = drps_path_join(dir, DRPS_MONITOR_FILE);
    *out = NULL;
    int rc = path ? drps_monitor_file_open(m, path, out, err)
                  : drps_err_set(err, -ENOMEM, "no memory for a path");
    free(path);
    return rc;
}

void drps_monitor_file_close(struct drps_monitor_file *f, int remove)
{
    if (!f) return;
    if (f->runs) {
        (void)pthread_mutex_lock(&f->lock);
        f->ends = 1;
        (void)pthread_cond_signal(&f->news);
        (void)pthread_mutex_unlock(&f->lock);
        (void)pthread_join(f->thread, NULL); /* it writes once more */
    }
    if (remove && f->path) (void)unlink(f->path);
    (void)pthread_cond_destroy(&f->news);
    (void)pthread_mutex_destroy(&f->lock);
    free(f->path);
    free(f->next);
    free(f);
}
