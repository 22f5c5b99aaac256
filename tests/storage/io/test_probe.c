/* Measuring a disk: a made-up one, whose time only passes with requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/drps_io.h"
#include "storage/io/drps_probe.h"
#include "storage/relay/drps_relay.h"
#include "support/fault_io.h"
#include "support/scratch.h"

/*
 * One request after another: each takes its time and that of its bytes, as does every request of
 * its size. Process-wide, as the clock has no context.
 */
static struct disk {
    pthread_mutex_t lock;
    uint64_t now;
    uint64_t read_ns, write_ns;           /* a request */
    uint64_t read_byte_ns, write_byte_ns; /* a byte */
    unsigned calm;                        /* requests until one takes pause_ns more; 0: none does */
    uint64_t pause_ns;
    unsigned requests;
    uint32_t random_bytes;        /* what random requests are to be; 0: whatever */
    unsigned first_reads;         /* of random_bytes at the file's beginning */
    unsigned reads[2], writes[2]; /* of random_bytes, and others */
    struct drps_io_ops ops;
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t disk_now(void)
{
    pthread_mutex_lock(&disk.lock);
    const uint64_t now = disk.now;
    pthread_mutex_unlock(&disk.lock);
    return now;
}

/* Others have the disk or the processor, from time to time. */
static uint64_t pause_of(void)
{
    return disk.calm && ++disk.requests % disk.calm == 0 ? disk.pause_ns : 0;
}

static ssize_t disk_pread(void *ctx, int fd, void *buf, size_t n, uint64_t offset)
{
    pthread_mutex_lock(&disk.lock);
    disk.now += disk.read_ns + n * disk.read_byte_ns + pause_of();
    disk.reads[n != disk.random_bytes]++;
    disk.first_reads += n == disk.random_bytes && offset == 0;
    pthread_mutex_unlock(&disk.lock);
    return drps_io_os()->ops->pread(ctx, fd, buf, n, offset);
}

static ssize_t disk_pwrite(void *ctx, int fd, const void *buf, size_t n, uint64_t offset)
{
    pthread_mutex_lock(&disk.lock);
    disk.now += disk.write_ns + n * disk.write_byte_ns + pause_of();
    disk.writes[n != disk.random_bytes]++;
    pthread_mutex_unlock(&disk.lock);
    return drps_io_os()->ops->pwrite(ctx, fd, buf, n, offset);
}

static struct drps_io disk_io(uint64_t read_ns, uint64_t write_ns, uint64_t read_byte_ns,
                              uint64_t write_byte_ns)
{
    const struct drps_io *os = drps_io_os();
    disk.read_ns = read_ns;
    disk.write_ns = write_ns;
    disk.read_byte_ns = read_byte_ns;
    disk.write_byte_ns = write_byte_ns;
    disk.calm = disk.requests = disk.first_reads = 0;
    disk.reads[0] = disk.reads[1] = disk.writes[0] = disk.writes[1] = 0;
    disk.ops = *os->ops;
    disk.ops.pread = disk_pread;
    disk.ops.pwrite = disk_pwrite;
    return (struct drps_io){.ops = &disk.ops, .ctx = os->ctx};
}

static void test_measure_takes_requests_of_the_sizes_in_use(void **state)
{
    static const struct {
        uint64_t block;
        uint32_t random;  /* block, as requests can be */
        uint64_t read_ns; /* a request */
        uint32_t chunk;   /* 16 times what the disk moves in the time of a read, in the mean of
                             reading and writing: a byte takes 200 ns, and 30 and its part of 3 ms
                             that 256 KiB take */
    } cases[] = {
        {1024, 4096, 1000000, 256 << 10},
        {4096, 4096, 20000000, 2650112},
        {10000, 12288, 100000000, 4 << 20},
        {64 << 20, 4 << 20, 1000000, 256 << 10},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_disk_times t;
        const struct drps_io io = disk_io(cases[i].read_ns, 3000000, 200, 30);
        disk.random_bytes = cases[i].random;
        int rc =
            drps_disk_measure(&io, s->dir, cases[i].block, drps_relay_chunk, disk_now, &t, &err);
        if (rc < 0) fail_msg("%s", err.text);
        assert_int_equal(t.random_bytes, cases[i].random);
        if (t.long_bytes / 65536 != cases[i].chunk / 65536)
            fail_msg("case %zu: long requests of %u bytes, not %u", i, t.long_bytes,
                     cases[i].chunk);
        assert_true(disk.reads[0] > 0 && disk.reads[1] > 0);
        assert_true(disk.writes[0] > 0 && disk.writes[1] > 0);
        /* one at a time, so the mean of requests is what each takes; within a nanosecond */
        assert_true(t.random_write_ns - (3e6 + 30.0 * t.random_bytes) < 1);
        assert_true(t.random_read_ns - ((double)cases[i].read_ns + 200.0 * t.random_bytes) < 1);
        assert_true(t.long_write_ns - (3e6 + 30.0 * t.long_bytes) < 1);
        assert_true(t.long_read_ns - ((double)cases[i].read_ns + 200.0 * t.long_bytes) < 1);
        assert_true(t.random_write_ns >= 3e6 && t.long_read_ns >= 200.0 * t.long_bytes);
        assert_int_equal(folder_entries(s->dir), 0);
    }
}

/* A read takes 9 us and each byte 1 ns, a write of 256 KiB 64 us and each byte 1 ns. */
static void test_pace_is_of_reads_beside_writes(void **state)
{
    /* Requests after which others have the disk for 20 ms, which half of the trials meet; 0: never.
     */
    static const unsigned calm[] = {0, 601, 701, 809, 907, 1009};
    const double byte_ns = (1 + 1 + 64000.0 / (256 << 10)) / 2;
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(calm) / sizeof(*calm); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_disk_pace pace;
        const struct drps_io io = disk_io(9000, 64000, 1, 1);
        disk.calm = calm[i];
        disk.random_bytes = 4096;
        disk.pause_ns = 20000000;
        const uint64_t start = disk.now;
        int rc = drps_disk_measure_pace(&io, s->dir, 0, disk_now, &pace, &err);
        if (rc < 0) fail_msg("%s", err.text);
        /* trials end with a write that may be short: a few parts in a hundred */
        if (fabs(pace.request_ns / 9000 - 1) > 0.1 || fabs(pace.bps * byte_ns * 1e-9 - 1) > 0.03)
            fail_msg("%u: %g ns a read and %g bytes a second, not 9000 and %g", calm[i],
                     pace.request_ns, pace.bps, 1e9 / byte_ns);
        assert_true(disk.now - start < 1000000000);
        /* a trial reads what none has read before: the file has 8192 places */
        assert_true(disk.reads[0] > 500 && disk.first_reads <= 1 + disk.reads[0] / 8192);
        assert_int_equal(folder_entries(s->dir), 0);
    }
}

static void test_pace_of_a_slow_disk_takes_one_round(void **state)
{
    struct scratch *s = *state;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_disk_pace pace;
    const struct drps_io io = disk_io(5000000, 5000000, 7, 7);
    disk.random_bytes = 4096;
    int rc = drps_disk_measure_pace(&io, s->dir, 0, disk_now, &pace, &err);
    if (rc < 0) fail_msg("%s", err.text);
    assert_int_equal(disk.reads[0] + disk.reads[1], 3 * 64);
    assert_int_equal(disk.reads[0], 64);
}

static void test_cost_takes_bytes_off_a_random_request(void **state)
{
    const struct drps_disk_times t = {.random_bytes = 4096,
                                      .long_bytes = 1 << 20,
                                      .random_read_ns = 50000,
                                      .random_write_ns = 4000,
                                      .long_read_ns = 1048576 * 0.5,
                                      .long_write_ns = 1048576 * 2.0};
    struct drps_disk_cost c;
    (void)state;
    drps_disk_cost_of(&t, &c);
    assert_true(c.read_bps == 2e9 && c.write_bps == 5e8);
    assert_true(c.read_seek_ns == 50000 - 2048);
    assert_true(c.write_seek_ns == 1); /* its bytes alone take longer */
}

static void test_measure_leaves_nothing_when_the_disk_fails(void **state)
{
    struct scratch *s = *state;
    static const unsigned ops[] = {FAULT_PWRITE, FAULT_PREAD};
    for (size_t i = 0; i < 2; i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_disk_times t;
        struct fault_io *f = fault_io_new(drps_io_os());
        fault_io_arm(f, ops[i], 5, 1, FAULT_ERROR, -EIO);
        assert_int_equal(
            drps_disk_measure(&f->io, s->dir, 4096, drps_relay_chunk, disk_now, &t, &err), -EIO);
        assert_int_equal(folder_entries(s->dir), 0);
        fault_io_free(f);
    }
}

static void test_measure_is_interrupted(void **state)
{
    struct scratch *s = *state;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_disk_times t;
    atomic_int stop = 1;
    const struct drps_io io = {.ops = drps_io_os()->ops, .ctx = drps_io_os()->ctx, .stop = &stop};
    assert_int_equal(drps_disk_measure(&io, s->dir, 4096, drps_relay_chunk, disk_now, &t, &err),
                     DRPS_E_INTERRUPTED);
    assert_int_equal(folder_entries(s->dir), 0);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_measure_takes_requests_of_the_sizes_in_use),
        SCRATCH_TEST(test_pace_is_of_reads_beside_writes),
        SCRATCH_TEST(test_pace_of_a_slow_disk_takes_one_round),
        cmocka_unit_test(test_cost_takes_bytes_off_a_random_request),
        SCRATCH_TEST(test_measure_leaves_nothing_when_the_disk_fails),
        SCRATCH_TEST(test_measure_is_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
