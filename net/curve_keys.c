/* The Curve keys of one rank, made with ZeroMQ and kept in a folder that others cannot read. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/drps_peers.h"

#ifdef DRPS_WITH_ZMQ
#include <zmq.h>
#endif

#define SECRET_FILE "secret.key"
#define PUBLIC_FILE "public.key"
static const char secret_format[] = "drps-key 1\npublic %s\nsecret %s\n";

#ifdef DRPS_WITH_ZMQ
int drps_net_keys_pair(struct drps_net_keys *keys, struct drps_err *err)
{
    if (zmq_curve_keypair(keys->public_key, keys->secret_key) == 0) return 0;
    return drps_err_set(err, DRPS_E_CONFIG, "no keys can be made: ZeroMQ: %s",
                        zmq_strerror(zmq_errno()));
}
#else
int drps_net_keys_pair(struct drps_net_keys *keys, struct drps_err *err)
{
    (void)keys;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "no keys can be made: this build has no ZeroMQ (DRPS_WITH_ZMQ)");
}
#endif

/* Make the file of the secret key: nobody else may read it, not even before it is written. */
static int write_new(const struct drps_io *io, const char *path, mode_t mode, const char *text,
                     struct drps_err *err)
{
    const int fd = io->ops->open(io->ctx, path, O_WRONLY | O_CREAT | O_EXCL, mode);
    if (fd == -EEXIST)
        return drps_err_set(err, fd, "%s exists already: keys are never overwritten", path);
    if (fd < 0) return drps_err_set(err, fd, "cannot create %s: %s", path, drps_err_name(fd));
    int rc = drps_io_write_at(io, fd, text, strlen(text), 0, path, err);
    if (rc == 0) rc = drps_io_sync(io, fd, path, err);
    drps_io_close(io, fd);
    return rc;
}

static int write_pair(const struct drps_io *io, const char *secret_path, const char *public_path,
                      const struct drps_net_keys *keys, struct drps_err *err)
{
    char text[160];
    (void)snprintf(text, sizeof(text), secret_format, keys->public_key, keys->secret_key);
    int rc = write_new(io, secret_path, 0600, text, err);
    explicit_bzero(text, sizeof(text));
    if (rc < 0) return rc;
    (void)snprintf(text, sizeof(text), "%s\n", keys->public_key);
    rc = write_new(io, public_path, 0644, text, err);
    if (rc < 0) (void)io->ops->unlink(io->ctx, secret_path); /* half a pair is of no use */
    return rc;
}

int drps_net_keys_make(const struct drps_io *io, const char *dir, struct drps_net_keys *keys_out,
                       struct drps_err *err)
{
    struct drps_net_keys keys = {{0}, {0}};
    memset(keys_out, 0, sizeof(*keys_out));
    char *secret_path = drps_path_join(dir, SECRET_FILE);
    char *public_path = drps_path_join(dir, PUBLIC_FILE);
    int rc = secret_path && public_path ? drps_net_keys_pair(&keys, err)
                                        : drps_err_set(err, -ENOMEM, "no memory for a path");
    if (rc == 0) {
        rc = io->ops->mkdir(io->ctx, dir, 0700);
        rc = rc == 0 || rc == -EEXIST
                 ? write_pair(io, secret_path, public_path, &keys, err)
                 : drps_err_set(err, rc, "cannot make folder %s: %s", dir, drps_err_name(rc));
    }
    if (rc == 0) *keys_out = keys;
    drps_net_keys_forget(&keys);
    free(secret_path);
    free(public_path);
    return rc;
}

static int check_mode(const char *path, struct drps_err *err)
{
    struct stat st;
    if (stat(path, &st)) return drps_err_set(err, -errno, "%s: %s", path, strerror(errno));
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return drps_err_set(err, -EACCES, "%s may be read by others (mode %04o): chmod 600 it",
                            path, (unsigned)st.st_mode & 07777u);
    return 0;
}

static int parse(const char *text, const char *path, struct drps_net_keys *keys,
                 struct drps_err *err)
{
    int end = 0;
    if (sscanf(text, "drps-key 1 public %40s secret %40s %n", keys->public_key, keys->secret_key,
               &end) == 2 &&
        end > 0 && !text[end] && strlen(keys->public_key) == DRPS_NET_KEY_BYTES - 1 &&
        strlen(keys->secret_key) == DRPS_NET_KEY_BYTES - 1)
        return 0;
    drps_net_keys_forget(keys);
    return drps_err_set(err, DRPS_E_FORMAT,
                        "%s is no key file of drps: expected 'drps-key 1', and 'public' and "
                        "'secret' with a key of %d characters each",
                        path, DRPS_NET_KEY_BYTES - 1);
}

int drps_net_keys_load(const struct drps_io *io, const char *dir, struct drps_net_keys *keys_out,
                       struct drps_err *err)
{
    char *text = NULL;
    size_t n = 0;
    memset(keys_out, 0, sizeof(*keys_out));
    char *path = drps_path_join(dir, SECRET_FILE);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory for a path");
    int rc = check_mode(path, err);
    if (rc == 0) rc = drps_io_read_text(io, path, 4096, &text, &n, err);
    if (rc == 0) rc = parse(text, path, keys_out, err);
    if (text) explicit_bzero(text, n);
    free(text);
    free(path);
    return rc;
}

void drps_net_keys_forget(struct drps_net_keys *keys)
{
    explicit_bzero(keys, sizeof(*keys));
}
