/* The device itself: its memory, queues, events and clock, and the table that drps loads. */
#include "device/cuda/cuda_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_err.h"
#include "device/cuda/products.h"

int device_failed(cudaError_t rc, const char *call, char *why)
{
    (void)snprintf(why, DRPS_DEVICE_TEXT_BYTES, "%s (%.100s)", cudaGetErrorString(rc), call);
    return rc == cudaErrorMemoryAllocation                                ? -ENOMEM
           : rc == cudaErrorNoDevice || rc == cudaErrorInsufficientDriver ? DRPS_E_NOT_FOUND
                                                                          : -EIO;
}

/* ---- Opening ---- */

static void close_device(struct drps_device *dev)
{
    if (!dev) return;
    products_close(dev); /* before the queue that it uses */
    for (unsigned q = 0; q < DRPS_DEVICE_QUEUES; q++)
        if (dev->queues[q]) {
            (void)cudaStreamSynchronize(dev->queues[q]);
            (void)cudaStreamDestroy(dev->queues[q]);
        }
    for (unsigned e = 0; e < DRPS_DEVICE_EVENTS; e++)
        if (dev->events[e]) (void)cudaEventDestroy(dev->events[e]);
    for (unsigned i = 0; dev->timed && i < TIMED_MOST; i++) {
        if (dev->timed[i].begin) (void)cudaEventDestroy(dev->timed[i].begin);
        if (dev->timed[i].end) (void)cudaEventDestroy(dev->timed[i].end);
    }
    free(dev->timed);
    free(dev);
}

static int make_queues(struct drps_device *dev, char *why)
{
    for (unsigned q = 0; q < DRPS_DEVICE_QUEUES; q++)
        DEVICE_TRY(cudaStreamCreateWithFlags(&dev->queues[q], cudaStreamNonBlocking));
    for (unsigned e = 0; e < DRPS_DEVICE_EVENTS; e++)
        DEVICE_TRY(cudaEventCreateWithFlags(&dev->events[e], cudaEventDisableTiming));
    return 0;
}

static int open_device(struct drps_device **out, char *why)
{
    int n = 0;
    *out = NULL;
    DEVICE_TRY(cudaGetDeviceCount(&n));
    if (!n) return device_failed(cudaErrorNoDevice, "cudaGetDeviceCount", why);
    DEVICE_TRY(cudaSetDevice(0));
    struct drps_device *dev = (struct drps_device *)calloc(1, sizeof(*dev));
    if (!dev) return device_failed(cudaErrorMemoryAllocation, "calloc", why);
    int rc = make_queues(dev, why);
    if (rc < 0)
        close_device(dev);
    else
        *out = dev;
    return rc;
}

static int about(struct drps_device *dev, struct drps_device_about *out, char *why)
{
    cudaDeviceProp properties;
    size_t free_bytes, all_bytes;
    int khz = 0, bits = 0;
    (void)dev;
    DEVICE_TRY(cudaGetDeviceProperties(&properties, 0));
    DEVICE_TRY(cudaMemGetInfo(&free_bytes, &all_bytes));
    DEVICE_TRY(cudaDeviceGetAttribute(&khz, cudaDevAttrMemoryClockRate, 0));
    DEVICE_TRY(cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, 0));
    (void)snprintf(out->name, sizeof(out->name), "%.90s", properties.name);
    out->memory_bytes = all_bytes;
    out->free_bytes = free_bytes;
    out->bytes_per_s = 2e3 * khz * bits / 8; /* twice a clock */
    return 0;
}

/* ---- Memory ---- */

static int alloc(struct drps_device *dev, size_t bytes, void **out, char *why)
{
    (void)dev;
    *out = NULL;
    DEVICE_TRY(cudaMalloc(out, bytes ? bytes : 1));
    return 0;
}

static void release(struct drps_device *dev, void *memory)
{
    (void)dev;
    if (memory) (void)cudaFree(memory);
}

static int pin(struct drps_device *dev, size_t bytes, void **out, char *why)
{
    (void)dev;
    *out = NULL;
    DEVICE_TRY(cudaMallocHost(out, bytes ? bytes : 1));
    return 0;
}

static void unpin(struct drps_device *dev, void *memory)
{
    (void)dev;
    if (memory) (void)cudaFreeHost(memory);
}

/* ---- Queues ---- */

static int upload(struct drps_device *dev, enum drps_device_queue queue, void *to,
                  const void *pinned, size_t bytes, char *why)
{
    if (!bytes) return 0;
    DEVICE_TRY(cudaMemcpyAsync(to, pinned, bytes, cudaMemcpyHostToDevice, dev->queues[queue]));
    return 0;
}

static int download(struct drps_device *dev, enum drps_device_queue queue, void *pinned,
                    const void *from, size_t bytes, char *why)
{
    if (!bytes) return 0;
    DEVICE_TRY(cudaMemcpyAsync(pinned, from, bytes, cudaMemcpyDeviceToHost, dev->queues[queue]));
    return 0;
}

static int mark(struct drps_device *dev, enum drps_device_queue queue, unsigned e, char *why)
{
    DEVICE_TRY(cudaEventRecord(dev->events[e], dev->queues[queue]));
    return 0;
}

static int after(struct drps_device *dev, enum drps_device_queue queue, unsigned e, char *why)
{
    DEVICE_TRY(cudaStreamWaitEvent(dev->queues[queue], dev->events[e], 0));
    return 0;
}

static int wait(struct drps_device *dev, unsigned e, char *why)
{
    DEVICE_TRY(cudaEventSynchronize(dev->events[e]));
    return 0;
}

/* ---- The clock ---- */

static int time_kernels(struct drps_device *dev, char *why)
{
    if (dev->is_timed) return 0;
    dev->timed = (struct timed *)calloc(TIMED_MOST, sizeof(*dev->timed));
    if (!dev->timed) return device_failed(cudaErrorMemoryAllocation, "calloc", why);
    for (unsigned i = 0; i < TIMED_MOST; i++) {
        DEVICE_TRY(cudaEventCreate(&dev->timed[i].begin));
        DEVICE_TRY(cudaEventCreate(&dev->timed[i].end));
    }
    dev->is_timed = 1;
    return 0;
}

/* Adds up what the kernels took whose events wait. */
static int read_clock(struct drps_device *dev, char *why)
{
    for (unsigned i = 0; i < dev->n_timed; i++) {
        const struct timed *t = &dev->timed[i];
        float ms = 0;
        DEVICE_TRY(cudaEventSynchronize(t->end));
        DEVICE_TRY(cudaEventElapsedTime(&ms, t->begin, t->end));
        dev->times.calls[t->kernel]++;
        dev->times.seconds[t->kernel] += 1e-3 * (double)ms;
    }
    dev->n_timed = 0;
    return 0;
}

int device_begin(struct drps_device *dev, enum drps_device_queue queue,
                 enum drps_device_kernel kernel, char *why)
{
    if (!dev->is_timed) return 0;
    int rc = dev->n_timed == TIMED_MOST ? read_clock(dev, why) : 0;
    if (rc < 0) return rc;
    dev->timed[dev->n_timed].kernel = kernel;
    DEVICE_TRY(cudaEventRecord(dev->timed[dev->n_timed].begin, dev->queues[queue]));
    return 0;
}

int device_end(struct drps_device *dev, enum drps_device_queue queue, char *why)
{
    if (!dev->is_timed) return 0;
    DEVICE_TRY(cudaEventRecord(dev->timed[dev->n_timed++].end, dev->queues[queue]));
    return 0;
}

static int times(struct drps_device *dev, struct drps_device_times *out, char *why)
{
    int rc = read_clock(dev, why);
    *out = dev->times;
    return rc;
}

/* ---- The table ---- */

static struct drps_device_ops make_table(void)
{
    struct drps_device_ops t = {};
    t.version = DRPS_DEVICE_VERSION;
    t.bytes = sizeof(t);
    t.name = "cuda";
    t.emulated = DRPS_DEVICE_EMULATED;
    t.open = open_device;
    t.close = close_device;
    t.about = about;
    t.alloc = alloc;
    t.release = release;
    t.pin = pin;
    t.unpin = unpin;
    t.upload = upload;
    t.download = download;
    t.mark = mark;
    t.after = after;
    t.wait = wait;
    t.gather = device_gather;
    t.scatter = device_scatter;
    t.can = device_can;
    t.room_bytes = device_room_bytes;
    t.results = device_results;
    t.train = device_train;
    t.predict = device_predict;
    t.time = time_kernels;
    t.times = times;
    return t;
}

extern "C" __attribute__((visibility("default"))) const struct drps_device_ops *
drps_device_table(void)
{
    static const struct drps_device_ops table = make_table();
    return &table;
}
