/*
 * Errors: a negative int and a text that says what failed, where and why.
 *
 * A function that can fail returns 0 (or a count) or a negative code. Faults of the operating
 * system keep -errno; drps's own codes lie below -4095. The text goes to `struct drps_err`, which
 * the caller owns, so that an error needs no allocation and may cross threads.
 */
#ifndef DRPS_ERR_H
#define DRPS_ERR_H

#include <stdarg.h>

#define DRPS_MUST_CHECK __attribute__((warn_unused_result))

#define DRPS_ERR_CODES(X)                                                                          \
    X(DRPS_E_NOT_FOUND, -4096, "not found")                                                        \
    X(DRPS_E_CORRUPT, -4097, "stored bytes are damaged")                                           \
    X(DRPS_E_FORMAT, -4098, "input is malformed")                                                  \
    X(DRPS_E_CONFIG, -4099, "options do not fit together")                                         \
    X(DRPS_E_BACKEND, -4100, "the storage library failed")                                         \
    X(DRPS_E_MEMORY_BUDGET, -4101, "the memory budget is too small")                               \
    X(DRPS_E_INTERRUPTED, -4102, "interrupted")                                                    \
    X(DRPS_E_CLOSED, -4103, "already closed")                                                      \
    X(DRPS_E_VERSION, -4104, "written by an incompatible version")                                 \
    X(DRPS_E_PROTO, -4105, "a peer broke the protocol")                                            \
    X(DRPS_E_PEER, -4106, "a peer is gone")                                                        \
    X(DRPS_E_PEER_FAILED, -4107, "a peer failed, and would again")

enum drps_err_code {
#define DRPS_ERR_ENUM(name, value, text) name = value,
    DRPS_ERR_CODES(DRPS_ERR_ENUM)
#undef DRPS_ERR_ENUM
};

struct drps_err {
    int code;        /* 0, or the code of the first failure */
    char text[1000]; /* one line, without a final newline; empty when code is 0 */
};

#define DRPS_ERR_INIT                                                                              \
    {                                                                                              \
        0,                                                                                         \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/*
 * Record a failure. The first one wins: if `err` already holds a failure, the new text is appended
 * to it ("; then: ..."), unless it is there: closing often meets what ended the work. `err` may be
 * NULL.
 * Returns `code`, so that `return drps_err_set(err, -EINVAL, ...)` reads well.
 */
int drps_err_set(struct drps_err *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "context: " before the text of a failure. No effect while `err` is NULL or clean. Returns
 * err's code. */
int drps_err_context(struct drps_err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Forget a failure that has been handled. */
void drps_err_clear(struct drps_err *err);

/* 1: the same work may succeed when it is started again: another process was lost, or what was full
 * or taken may have been freed. 0: it will fail again. */
int drps_err_may_pass(int code);

/* Returns a short text for any code, -errno included. Static or thread-local storage; never NULL.
 */
const char *drps_err_name(int code);

#endif
