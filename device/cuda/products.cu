/* cuBLAS counts matrices by columns: a row-major matrix is a transposed one of its. Its results are
 * the same from run to run, as one queue alone calls it. */
#include "device/cuda/products.h"

#include <cublas_v2.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/drps_err.h"

struct products {
    cublasHandle_t handle;
    decltype(&cublasCreate) create;
    decltype(&cublasDestroy) destroy;
    decltype(&cublasSetStream) set_stream;
    decltype(&cublasSetWorkspace) set_workspace;
    decltype(&cublasSgemm) sgemm;
};

#define NAME_OF(x) NAME_OF_(x)
#define NAME_OF_(x) #x
#define LIBRARY "libcublas.so." NAME_OF(CUBLAS_VER_MAJOR)

static int not_there(const char *reason, char *why)
{
    (void)snprintf(why, DRPS_DEVICE_TEXT_BYTES, "nets need cuBLAS: %.200s", reason);
    return DRPS_E_NOT_FOUND;
}

#if DRPS_DEVICE_EMULATED
static int find(struct products *p, char *why)
{
    if (!emulated_cublas_is_there()) return not_there("the emulated device has none", why);
    p->create = cublasCreate;
    p->destroy = cublasDestroy;
    p->set_stream = cublasSetStream;
    p->set_workspace = cublasSetWorkspace;
    p->sgemm = cublasSgemm;
    return 0;
}
#else
static int find(struct products *p, char *why)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL); /* stays */
    if (library) {
        p->create = (decltype(p->create))dlsym(library, NAME_OF(cublasCreate));
        p->destroy = (decltype(p->destroy))dlsym(library, NAME_OF(cublasDestroy));
        p->set_stream = (decltype(p->set_stream))dlsym(library, NAME_OF(cublasSetStream));
        p->set_workspace = (decltype(p->set_workspace))dlsym(library, NAME_OF(cublasSetWorkspace));
        p->sgemm = (decltype(p->sgemm))dlsym(library, NAME_OF(cublasSgemm));
    }
    if (library && p->create && p->destroy && p->set_stream && p->set_workspace && p->sgemm)
        return 0;
    return not_there(library ? LIBRARY " is another one" : dlerror(), why);
}
#endif

int products_can(char *why)
{
    struct products p = {};
    return find(&p, why) == 0;
}

static int not_set_up(char *why)
{
    (void)snprintf(why, DRPS_DEVICE_TEXT_BYTES, "cuBLAS cannot be set up");
    return -EIO;
}

static int set_up(struct products *p, cudaStream_t queue, char *why)
{
    const int is_made = p->create(&p->handle) == CUBLAS_STATUS_SUCCESS;
    if (is_made && p->set_stream(p->handle, queue) == CUBLAS_STATUS_SUCCESS) return 0;
    if (is_made) (void)p->destroy(p->handle);
    return not_set_up(why);
}

static int open_handle(struct drps_device *dev, char *why)
{
    if (dev->products) return 0;
    struct products *p = (struct products *)calloc(1, sizeof(*p));
    if (!p) return device_failed(cudaErrorMemoryAllocation, "calloc", why);
    int rc = find(p, why);
    if (rc == 0) rc = set_up(p, dev->queues[DRPS_DEVICE_COMPUTE], why);
    if (rc < 0)
        free(p);
    else
        dev->products = p;
    return rc;
}

int products_open(struct drps_device *dev, void *workspace, char *why)
{
    int rc = open_handle(dev, why);
    if (rc < 0) return rc;
    const struct products *p = dev->products;
    const cublasStatus_t status = p->set_workspace(p->handle, workspace, PRODUCTS_WORKSPACE);
    return status == CUBLAS_STATUS_SUCCESS ? 0 : not_set_up(why);
}

void products_close(struct drps_device *dev)
{
    if (!dev->products) return;
    (void)dev->products->destroy(dev->products->handle);
    free(dev->products);
    dev->products = NULL;
}

/* out [n][m] by columns = a times b, of which those that are `turned` are transposed; m x k times
 * k x n. */
static int multiply(struct drps_device *dev, int turned_a, int turned_b, size_t m, size_t n,
                    size_t k, const float *a, size_t step_a, const float *b, size_t step_b,
                    float before, float *out, size_t step_out, char *why)
{
    const float one = 1;
    const struct products *p = dev->products;
    int rc = device_begin(dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_PRODUCT, why);
    if (rc < 0) return rc;
    if (p->sgemm(p->handle, turned_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                 turned_b ? CUBLAS_OP_T : CUBLAS_OP_N, (int)m, (int)n, (int)k, &one, a, (int)step_a,
                 b, (int)step_b, &before, out, (int)step_out) != CUBLAS_STATUS_SUCCESS) {
        (void)snprintf(why, DRPS_DEVICE_TEXT_BYTES, "cuBLAS refuses a product of %zu x %zu x %zu",
                       m, k, n);
        return -EIO;
    }
    return device_end(dev, DRPS_DEVICE_COMPUTE, why);
}

int product(struct drps_device *dev, size_t n, size_t w, size_t N, const float *in,
            const float *weights, float *out, char *why)
{
    return multiply(dev, 1, 0, N, n, w, weights, w, in, w, 1, out, N, why);
}

int product_weights(struct drps_device *dev, size_t n, size_t w, size_t N, const float *slopes,
                    const float *in, int adds, float *of_weights, char *why)
{
    return multiply(dev, 0, 1, w, N, n, in, w, slopes, N, adds ? 1 : 0, of_weights, w, why);
}

int product_back(struct drps_device *dev, size_t n, size_t w, size_t N, const float *slopes,
                 const float *weights, int adds, float *of_in, char *why)
{
    return multiply(dev, 0, 0, w, n, N, weights, w, slopes, N, adds ? 1 : 0, of_in, w, why);
}
