/* Nets that have a name: each is a text in which the number of factors is still to be written, if
 * it has any. */
#include "index/layers/drps_layers.h"

#include <stdio.h>
#include <string.h>

/* Each $ of a text stands for the factors. Nets that sum numbers to their score are for one score;
 * the others end in `full classes`, which is one number or one for each class. */
static const struct net {
    const char *name;
    uint32_t factors; /* where the caller names none; 0: it has none */
    const char *text;
} nets[] = {
    {"mlp", 16,
     "# A multilayer perceptron over the sum of a sample's factors\n"
     "x = bag $\n"
     "h = relu x\n"
     "h = full 64 h\n"
     "h = relu h\n"
     "score = full classes h\n"},
    {"wide-deep", 16,
     "# Wide & Deep: Cheng et al., DLRS 2016\n"
     "first = linear\n"
     "x = embedding $\n"
     "h = full 128 x\n"
     "h = relu h\n"
     "h = full 64 h\n"
     "h = relu h\n"
     "deep = full 1 h\n"
     "score = sum first deep\n"},
    {"deepfm", 16,
     "# DeepFM: Guo et al., IJCAI 2017\n"
     "first = linear\n"
     "x = embedding $\n"
     "pairs = fm x\n"
     "h = dropout 0.3 x\n"
     "h = full 128 h\n"
     "h = relu h\n"
     "h = dropout 0.3 h\n"
     "h = full 128 h\n"
     "h = relu h\n"
     "h = dropout 0.3 h\n"
     "deep = full 1 h\n"
     "score = sum first pairs deep\n"},
    {"dlrm", 16,
     "# DLRM: Naumov et al., 2019; all fields are categories\n"
     "x = embedding $\n"
     "pairs = dots x\n"
     "h = join pairs x\n"
     "h = dropout 0.3 h\n"
     "h = full 128 h\n"
     "h = relu h\n"
     "h = dropout 0.3 h\n"
     "h = full 64 h\n"
     "h = relu h\n"
     "h = dropout 0.3 h\n"
     "score = full classes h\n"},
    {"dcn", 16,
     "# Deep & Cross: Wang et al., ADKDD 2017\n"
     "x = embedding $\n"
     "c = cross x x\n"
     "c = cross x c\n"
     "c = cross x c\n"
     "h = full 128 x\n"
     "h = relu h\n"
     "h = full 128 h\n"
     "h = relu h\n"
     "h = join c h\n"
     "score = full classes h\n"},
    {"lstm", 200,
     "# A language model: Zaremba, Sutskever and Vinyals, 2014, with less dropout\n"
     "h = bag $\n"
     "h = dropout 0.2 h\n"
     "h = lstm $ h\n"
     "h = dropout 0.2 h\n"
     "h = lstm $ h\n"
     "h = dropout 0.2 h\n"
     "score = full classes h\n"},
    {"lenet", 0,
     "# LeNet: LeCun et al., Proceedings of the IEEE 1998; with relu, the largest of pixels, and\n"
     "# dropout\n"
     "x = image 1 28 28\n"
     "h = conv 20 5 1 0 x\n"
     "h = relu h\n"
     "h = pool 2 2 h\n"
     "h = conv 50 5 1 0 h\n"
     "h = relu h\n"
     "h = pool 2 2 h\n"
     "h = full 500 h\n"
     "h = relu h\n"
     "h = dropout 0.5 h\n"
     "score = full classes h\n"},
    {"alexnet", 0,
     "# AlexNet: Krizhevsky et al., NIPS 2012; in one piece, without local response\n"
     "# normalization\n"
     "x = image channels 224 224\n"
     "h = conv 96 11 4 2 x\n"
     "h = relu h\n"
     "h = pool 3 2 h\n"
     "h = conv 256 5 1 2 h\n"
     "h = relu h\n"
     "h = pool 3 2 h\n"
     "h = conv 384 3 1 1 h\n"
     "h = relu h\n"
     "h = conv 384 3 1 1 h\n"
     "h = relu h\n"
     "h = conv 256 3 1 1 h\n"
     "h = relu h\n"
     "h = pool 3 2 h\n"
     "h = dropout 0.5 h\n"
     "h = full 4096 h\n"
     "h = relu h\n"
     "h = dropout 0.5 h\n"
     "h = full 4096 h\n"
     "h = relu h\n"
     "score = full classes h\n"},
};
enum { NETS = sizeof(nets) / sizeof(*nets) };

static const struct net *find(const char *name)
{
    for (size_t i = 0; i < NETS; i++)
        if (!strcmp(nets[i].name, name)) return &nets[i];
    return NULL;
}

const char *drps_layers_names(char out[DRPS_LAYERS_NAMES_BYTES])
{
    size_t n = 0;
    for (size_t i = 0; i < NETS && n < DRPS_LAYERS_NAMES_BYTES; i++)
        n += (size_t)snprintf(out + n, DRPS_LAYERS_NAMES_BYTES - n, "%s%s", i ? ", " : "",
                              nets[i].name);
    return out;
}

static int unknown(const char *name, struct drps_err *err)
{
    char known[DRPS_LAYERS_NAMES_BYTES];
    return drps_err_set(err, DRPS_E_CONFIG, "there is no net `%.32s`; there are %s", name,
                        drps_layers_names(known));
}

/* Writes the text of a net. Returns 0, or -1: it is longer than DRPS_LAYERS_TEXT. */
static int write_text(const struct net *net, uint32_t factors, char text[DRPS_LAYERS_TEXT])
{
    size_t n = 0;
    for (const char *at = net->text; *at; at += strcspn(at, "$")) {
        if (*at == '$') {
            n += (size_t)snprintf(text + n, DRPS_LAYERS_TEXT - n, "%u", factors);
            at++;
        }
        n += (size_t)snprintf(text + n, n < DRPS_LAYERS_TEXT ? DRPS_LAYERS_TEXT - n : 0, "%.*s",
                              (int)strcspn(at, "$"), at);
        if (n >= DRPS_LAYERS_TEXT) return -1;
    }
    return 0;
}

int drps_layers_named(struct drps_layers *l, const char *name, uint32_t factors,
                      struct drps_err *err)
{
    char text[DRPS_LAYERS_TEXT];
    const struct net *net = find(name);
    l->n = 0;
    if (!net) return unknown(name, err);
    if (!net->factors && factors)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the net %s looks at no feature, and so has no factors: leave their "
                            "number out",
                            net->name);
    if (write_text(net, factors ? factors : net->factors, text) < 0)
        return drps_err_set(err, DRPS_E_CONFIG, "the text of the net %s is too long", net->name);
    return drps_layers_parse(l, text, err);
}

int drps_layers_for_numbers(struct drps_layers *l, struct drps_err *err)
{
    static const char classes[] = "full classes ", one[] = "full 1 ";
    char text[DRPS_LAYERS_TEXT], *at;
    (void)snprintf(text, sizeof(text), "%s", l->text);
    while ((at = strstr(text, classes)) != NULL) {
        char *rest = at + sizeof(classes) - 1;
        memmove(at + sizeof(one) - 1, rest, strlen(rest) + 1);
        memcpy(at, one, sizeof(one) - 1);
    }
    return drps_layers_parse(l, text, err);
}

int drps_layers_has_name(const char *name)
{
    return find(name) != NULL;
}
