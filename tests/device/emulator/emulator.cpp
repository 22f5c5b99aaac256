/* See cuda_runtime.h. All calls take one lock: two threads of the host never run kernels at a time.
 */
#include "cublas_v2.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <deque>
#include <map>
#include <mutex>
#include <vector>

static std::recursive_mutex lock;
typedef std::lock_guard<std::recursive_mutex> guard;

enum : size_t {
    PAGE = 4096,
    DEVICE_BYTES = (size_t)16 << 30, /* of addresses, not of memory */
    ALIGN = 16,
    STACK = 64 << 10,
    LANES = 32
};

[[noreturn]] static void die(const char *what)
{
    fprintf(stderr, "emulated device: %s\n", what);
    abort();
}

const char *cudaGetErrorString(cudaError_t rc)
{
    switch (rc) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInsufficientDriver:
        return "driver is too old";
    case cudaErrorNoDevice:
        return "no device";
    case cudaErrorLaunchFailure:
        return "launch failed";
    }
    return "unknown error";
}

/* ---- Memory ---- */

/* Bytes of the device from `base`, and what of them is allocated: begin to size. */
static char *base;
static size_t used;
static std::map<char *, size_t> device_memory, pinned_memory;
static size_t device_used;

/* What DRPS_EMULATED_MEMORY says that the device has, or 1 GiB. */
static size_t device_limit()
{
    const char *text = getenv("DRPS_EMULATED_MEMORY");
    return text ? (size_t)strtoull(text, NULL, 10) : (size_t)1 << 30;
}

static void open_memory(bool is_open)
{
    static int depth;
    depth += is_open ? 1 : -1;
    if (depth != (is_open ? 1 : 0)) return;
    for (const auto &m : device_memory) {
        char *begin = (char *)((uintptr_t)m.first / PAGE * PAGE);
        if (mprotect(begin, (size_t)(m.first + m.second - begin + PAGE - 1) / PAGE * PAGE,
                     is_open ? PROT_READ | PROT_WRITE : PROT_NONE))
            die("mprotect failed");
    }
}

static bool lies_in(const std::map<char *, size_t> &memory, const void *at, size_t bytes)
{
    auto next = memory.upper_bound((char *)at);
    if (next == memory.begin()) return false;
    --next;
    const size_t offset = (size_t)((char *)at - next->first);
    return offset <= next->second && bytes <= next->second - offset;
}

static cudaError_t run_all();

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    guard held(lock);
    const size_t size = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    const size_t pages = (size + PAGE - 1) / PAGE * PAGE;
    if (device_used + size > device_limit()) return cudaErrorMemoryAllocation;
    if (!base) {
        void *all =
            mmap(NULL, DEVICE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (all == MAP_FAILED) return cudaErrorMemoryAllocation;
        base = (char *)all;
    }
    if (used + pages + PAGE > DEVICE_BYTES) return cudaErrorMemoryAllocation;
    char *begin = base + used + pages - size; /* so that what lies behind it is not there */
    used += pages + PAGE;
    device_used += size;
    open_memory(true);
    device_memory[begin] = size;
    if (mprotect(begin - (uintptr_t)begin % PAGE, pages, PROT_READ | PROT_WRITE))
        die("mprotect failed");
    memset(begin, 0xff, size);
    open_memory(false);
    *out = begin;
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    guard held(lock);
    auto m = device_memory.find((char *)memory);
    if (m == device_memory.end()) die("freed what was not allocated");
    const cudaError_t rc = run_all();
    char *begin = (char *)((uintptr_t)m->first / PAGE * PAGE);
    const size_t pages = (size_t)(m->first + m->second - begin + PAGE - 1) / PAGE * PAGE;
    (void)madvise(begin, pages, MADV_DONTNEED);
    device_used -= m->second;
    device_memory.erase(m);
    return rc;
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    guard held(lock);
    const size_t size = (bytes + PAGE - 1) / PAGE * PAGE;
    *out = aligned_alloc(PAGE, size);
    if (!*out) return cudaErrorMemoryAllocation;
    memset(*out, 0xff, size);
    pinned_memory[(char *)*out] = bytes;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    guard held(lock);
    auto m = pinned_memory.find((char *)memory);
    if (m == pinned_memory.end()) die("unpinned what was not pinned");
    const cudaError_t rc = run_all();
    pinned_memory.erase(m);
    free(memory);
    return rc;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes)
{
    guard held(lock);
    *all_bytes = device_limit();
    *free_bytes = *all_bytes > device_used ? *all_bytes - device_used : 0;
    return cudaSuccess;
}

bool emulated::points_to_host(const void *argument, size_t bytes)
{
    guard held(lock);
    for (size_t at = 0; at + sizeof(uintptr_t) <= bytes; at += sizeof(uintptr_t)) {
        uintptr_t word;
        unsigned char there;
        memcpy(&word, (const char *)argument + at, sizeof(word));
        const uintptr_t high = word >> 32;
        if (high < 0x5500 || high > 0x7fff || lies_in(device_memory, (void *)word, 0)) continue;
        if (mincore((void *)(word / PAGE * PAGE), 1, &there)) continue; /* no address: a number */
        fprintf(stderr, "emulated device: word %zu of a kernel's argument points to the host\n",
                at / sizeof(word));
        return true;
    }
    return false;
}

/* ---- Streams and events ---- */

struct CUstream_st {
    std::deque<std::function<cudaError_t()>> work;
    uint64_t given, done;
};
struct CUevent_st {
    cudaStream_t stream;
    uint64_t at;
};
static std::vector<cudaStream_t> streams;

/* Does what the stream was given, up to its piece of work number `at`. */
static cudaError_t run(cudaStream_t stream, uint64_t at)
{
    cudaError_t rc = cudaSuccess;
    while (stream->done < at && rc == cudaSuccess) {
        auto work = stream->work.front();
        stream->work.pop_front();
        stream->done++;
        rc = work();
    }
    return rc;
}

static cudaError_t run_all()
{
    cudaError_t rc = cudaSuccess;
    for (auto stream : streams)
        if (rc == cudaSuccess) rc = run(stream, stream->given);
    return rc;
}

static cudaError_t give(cudaStream_t stream, std::function<cudaError_t()> work)
{
    stream->work.push_back(work);
    stream->given++;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    guard held(lock);
    *out = new CUstream_st();
    streams.push_back(*out);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    guard held(lock);
    for (size_t i = 0; i < streams.size(); i++)
        if (streams[i] == stream) streams.erase(streams.begin() + (long)i);
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    guard held(lock);
    return run(stream, stream->given);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned)
{
    *out = new CUevent_st();
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    guard held(lock);
    event->stream = stream;
    event->at = stream->given;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    guard held(lock);
    return event->stream ? run(event->stream, event->at) : cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    guard held(lock);
    const CUevent_st now = *event;
    if (!now.stream) return cudaSuccess;
    return give(stream, [now] { return run(now.stream, now.at); });
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t)
{
    *ms = 0; /* an emulated device has no speed */
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    guard held(lock);
    const int is_upload = kind == cudaMemcpyHostToDevice;
    if (!lies_in(device_memory, is_upload ? to : from, bytes) ||
        !lies_in(pinned_memory, is_upload ? from : to, bytes)) {
        fprintf(stderr, "emulated device: a copy of %zu bytes that leaves what was allocated\n",
                bytes);
        return cudaErrorInvalidValue;
    }
    return give(stream, [to, from, bytes] {
        open_memory(true);
        memcpy(to, from, bytes);
        open_memory(false);
        return cudaSuccess;
    });
}

/* ---- The device ---- */

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return device ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int)
{
    snprintf(out->name, sizeof(out->name), "an emulated device");
    out->totalGlobalMem = device_limit();
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr, int)
{
    *out = 0;
    return cudaSuccess;
}

/* ---- The threads of a block ---- */

dim3 threadIdx, blockIdx, blockDim, gridDim;

struct fiber {
    ucontext_t context;
    char *stack;
    enum { READY, AT_BLOCK, AT_WARP, DONE } state;
    unsigned shuffles; /* that it has come to */
};
static std::vector<fiber> fibers;
static ucontext_t scheduler;
static unsigned current;
static const std::function<void()> *thread_body;
static std::vector<uint32_t> shuffled[2]; /* by the parity of a lane's shuffles: [threads] */

unsigned emulated::lane()
{
    return current % LANES;
}

static void yield(unsigned state)
{
    fiber &f = fibers[current];
    f.state = (decltype(f.state))state;
    const dim3 at = threadIdx;
    const unsigned self = current;
    swapcontext(&f.context, &scheduler);
    current = self;
    threadIdx = at;
}

void emulated::meet_block()
{
    yield(fiber::AT_BLOCK);
}

void emulated::meet_warp()
{
    fibers[current].shuffles++;
    yield(fiber::AT_WARP);
}

uint32_t emulated::shuffle(uint32_t mask, uint32_t bits, unsigned from)
{
    const unsigned self = current, parity = fibers[self].shuffles++ % 2;
    if (mask != 0xffffffffu) die("a shuffle of some lanes of a warp: not emulated");
    shuffled[parity][self] = bits;
    yield(fiber::AT_WARP);
    return shuffled[parity][self / LANES * LANES + from % LANES];
}

static void run_thread()
{
    (*thread_body)();
    fibers[current].state = fiber::DONE;
    swapcontext(&fibers[current].context, &scheduler); /* never back */
}

static void begin_fiber(unsigned i)
{
    fiber &f = fibers[i];
    if (!f.stack) {
        void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (stack == MAP_FAILED) die("no memory for the threads of a block");
        f.stack = (char *)stack;
    }
    f.state = fiber::READY;
    f.shuffles = 0;
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack;
    f.context.uc_stack.ss_size = STACK;
    f.context.uc_link = NULL;
    makecontext(&f.context, run_thread, 0);
}

/* Runs the lanes of a warp until none can go on by itself; those that meet in a shuffle do. */
static void run_warp(unsigned first, unsigned end)
{
    for (;;) {
        unsigned waiting = 0, gone = 0;
        for (unsigned i = first; i < end; i++) {
            if (fibers[i].state == fiber::READY) {
                current = i;
                threadIdx = dim3(i);
                threadIdx.y = threadIdx.z = 0;
                swapcontext(&scheduler, &fibers[i].context);
            }
            waiting += fibers[i].state == fiber::AT_WARP;
            gone += fibers[i].state == fiber::DONE || fibers[i].state == fiber::AT_BLOCK;
        }
        if (!waiting) return;
        if (gone) die("a lane of a warp does not come to a shuffle that the others wait in");
        for (unsigned i = first; i < end; i++)
            if (fibers[i].shuffles != fibers[first].shuffles)
                die("lanes of a warp meet in different shuffles");
        for (unsigned i = first; i < end; i++)
            fibers[i].state = fiber::READY;
    }
}

static void run_block(unsigned threads)
{
    for (unsigned i = 0; i < threads; i++)
        begin_fiber(i);
    for (;;) {
        unsigned waiting = 0;
        for (unsigned w = 0; w < threads; w += LANES)
            run_warp(w, w + LANES < threads ? w + LANES : threads);
        for (unsigned i = 0; i < threads; i++)
            waiting += fibers[i].state == fiber::AT_BLOCK;
        if (!waiting) return;
        for (unsigned i = 0; i < threads; i++)
            if (fibers[i].state == fiber::AT_BLOCK) fibers[i].state = fiber::READY;
    }
}

static cudaError_t run_grid(dim3 grid, dim3 block, const std::function<void()> &body)
{
    if (fibers.size() < block.x) {
        fibers.resize(block.x);
        shuffled[0].resize(block.x);
        shuffled[1].resize(block.x);
    }
    open_memory(true);
    thread_body = &body;
    gridDim = grid;
    blockDim = block;
    for (unsigned i = 0; i < grid.x; i++) {
        blockIdx = dim3(i);
        blockIdx.y = blockIdx.z = 0;
        run_block(block.x);
    }
    open_memory(false);
    return cudaSuccess;
}

cudaError_t emulated::launch(const cudaLaunchConfig_t *config, std::function<void()> thread)
{
    guard held(lock);
    const dim3 grid = config->gridDim, block = config->blockDim;
    if (!grid.x || !block.x || block.x > 1024 || block.x % LANES) return cudaErrorInvalidValue;
    return give(config->stream, [grid, block, thread] { return run_grid(grid, block, thread); });
}

/* ---- cuBLAS ---- */

struct cublasContext {
    cudaStream_t stream;
    void *workspace;
    size_t workspace_bytes;
};

bool emulated_cublas_is_there()
{
    const char *which = getenv("DRPS_EMULATED_CUBLAS");
    return !which || strcmp(which, "none") != 0;
}

cublasStatus_t cublasCreate(cublasHandle_t *out)
{
    *out = new cublasContext();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    guard held(lock);
    bool is_there = !handle->stream;
    for (auto stream : streams)
        is_there |= stream == handle->stream;
    if (!is_there) die("cuBLAS is closed after its stream");
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    handle->workspace = NULL; /* cuBLAS forgets it, too */
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes)
{
    if ((uintptr_t)workspace % 256) return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                           int m, int n, int k, const float *alpha, const float *a, int step_a,
                           const float *b, int step_b, const float *beta, float *out, int step_out)
{
    guard held(lock);
    const float by = *alpha, before = *beta;
    if (m < 1 || n < 1 || k < 1 || step_out < m || step_a < (of_a == CUBLAS_OP_T ? k : m) ||
        step_b < (of_b == CUBLAS_OP_T ? n : k))
        return CUBLAS_STATUS_INVALID_VALUE;
    void *const workspace = handle->workspace;
    const size_t bytes = handle->workspace_bytes;
    if (!workspace || !lies_in(device_memory, workspace, bytes))
        die("a product without a workspace of allocated memory");
    give(handle->stream, [=] {
        open_memory(true);
        memset(workspace, 0xff, bytes);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                float sum = 0;
                for (int l = 0; l < k; l++) {
                    const size_t at_a =
                        of_a == CUBLAS_OP_T ? (size_t)i * step_a + l : (size_t)l * step_a + i;
                    const size_t at_b =
                        of_b == CUBLAS_OP_T ? (size_t)l * step_b + j : (size_t)j * step_b + l;
                    sum += a[at_a] * b[at_b];
                }
                float *to = &out[(size_t)j * step_out + i];
                *to = by * sum + (before != 0 ? before * *to : 0);
            }
        open_memory(false);
        return cudaSuccess;
    });
    return CUBLAS_STATUS_SUCCESS;
}
