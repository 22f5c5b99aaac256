/*
 * ONNX, operator set 13: features are numbers of rows, so that a model of millions of features has
 * inputs of a few.
 *
 *   ids     int64 [samples][entries]  row of each feature: line ids + 1 of FILE.names
 *   values  float [samples][entries]  its value; 0 fills up samples that have fewer
 *
 *   weighted = Gather(rows, ids) * values                      [samples][entries][D]
 *   sums     = ReduceSum(weighted) over entries                [samples][D]
 *   linear, matrix:  scores = sums + intercept                 [samples] or [samples][J]
 *   fm, mf:          scores = sums . (1, 0, ...) + intercept
 *                             + (sums^2 - ReduceSum(weighted^2)) . (0, 1/2, ...)
 *
 * and Sigmoid or Softmax where prediction has them; a calibration by platt is two more operators.
 * The rows are the last bytes of the file, so that they are written as they are read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/folder/drps_escape.h"
#include "base/folder/drps_manifest.h"
#include "engine/export/kinds.h"
#include "engine/export/protobuf.h"

/* Field numbers of onnx.proto that are used, and its numbers for types. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_METADATA = 14,
    OPSET_VERSION = 2,
    ENTRY_KEY = 1,
    ENTRY_VALUE = 2,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_OPERATOR = 4,
    NODE_ATTRIBUTE = 5,
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_INT = 3,
    ATTRIBUTE_TYPE = 20,
    ATTRIBUTE_IS_INT = 2,
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    VALUE_NAME = 1,
    VALUE_TYPE = 2,
    TYPE_TENSOR = 1,
    TENSOR_OF = 1,
    TENSOR_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    DIM_NAME = 2,
    FLOAT32 = 1,
    INT64 = 7,
};
enum { IR_VERSION = 7, OPERATOR_SET = 13 };
#define FILE_MOST (UINT64_C(1) << 31)

/* ---- Parts of a graph ---- */

/* A node of up to two inputs, with an attribute of a number where `attribute` is given. */
static void add_node(struct protobuf *graph, const char *operator, const char * a, const char *b,
                     const char *output, const char *attribute, int64_t v)
{
    struct protobuf node = {.n = 0}, attr = {.n = 0};
    protobuf_text(&node, NODE_INPUT, a);
    if (b) protobuf_text(&node, NODE_INPUT, b);
    protobuf_text(&node, NODE_OUTPUT, output);
    protobuf_text(&node, NODE_OPERATOR, operator);
    if (attribute) {
        protobuf_text(&attr, ATTRIBUTE_NAME, attribute);
        protobuf_number(&attr, ATTRIBUTE_INT, (uint64_t)v);
        protobuf_number(&attr, ATTRIBUTE_TYPE, ATTRIBUTE_IS_INT);
        protobuf_message(&node, NODE_ATTRIBUTE, &attr);
    }
    protobuf_message(graph, GRAPH_NODE, &node);
}

/* The head of a tensor of up to two dimensions; 0: there is none. */
static void begin_tensor(struct protobuf *t, const char *name, int type, uint64_t rows,
                         uint64_t columns)
{
    if (rows) protobuf_number(t, TENSOR_DIMS, rows);
    if (columns) protobuf_number(t, TENSOR_DIMS, columns);
    protobuf_number(t, TENSOR_TYPE, (uint64_t)type);
    protobuf_text(t, TENSOR_NAME, name);
}

static void add_floats(struct protobuf *graph, const char *name, const float *v, size_t n,
                       int is_scalar)
{
    struct protobuf t = {.n = 0};
    begin_tensor(&t, name, FLOAT32, is_scalar ? 0 : n, 0);
    protobuf_bytes(&t, TENSOR_RAW, v, n * sizeof(*v));
    protobuf_message(graph, GRAPH_INITIALIZER, &t);
}

static void add_axis(struct protobuf *graph, const char *name, int64_t axis)
{
    struct protobuf t = {.n = 0};
    begin_tensor(&t, name, INT64, 1, 0);
    protobuf_bytes(&t, TENSOR_RAW, &axis, sizeof(axis));
    protobuf_message(graph, GRAPH_INITIALIZER, &t);
}

/* An input or output of samples by `second`, a name, or by `columns` numbers; neither: samples. */
static void add_value(struct protobuf *graph, unsigned field, const char *name, int type,
                      const char *second, uint64_t columns)
{
    struct protobuf value = {.n = 0}, of = {.n = 0}, tensor = {.n = 0}, shape = {.n = 0};
    struct protobuf dim = {.n = 0};
    protobuf_text(&dim, DIM_NAME, "samples");
    protobuf_message(&shape, SHAPE_DIM, &dim);
    if (second) protobuf_text(&dim, DIM_NAME, second);
    if (columns) protobuf_number(&dim, DIM_VALUE, columns);
    if (second || columns) protobuf_message(&shape, SHAPE_DIM, &dim);
    protobuf_number(&tensor, TENSOR_OF, (uint64_t)type);
    protobuf_message(&tensor, TENSOR_SHAPE, &shape);
    protobuf_message(&of, TYPE_TENSOR, &tensor);
    protobuf_text(&value, VALUE_NAME, name);
    protobuf_message(&value, VALUE_TYPE, &of);
    protobuf_message(graph, field, &value);
}

/* ---- The graph of a model ---- */

static enum drps_scoring predictor_of(const struct drps_model *m)
{
    return drps_algorithm_of(drps_algorithm(m->algo), &m->expr)->predictor;
}

/* Weights that pick the first float of the sums, and half of all others. */
static int add_picks(struct protobuf *graph, uint32_t dim, struct drps_err *err)
{
    float *picks = calloc(dim, sizeof(*picks));
    if (!picks) return drps_err_set(err, -ENOMEM, "no memory for %u weights", dim);
    picks[0] = 1;
    add_floats(graph, "first", picks, dim, 0);
    picks[0] = 0;
    for (uint32_t k = 1; k < dim; k++)
        picks[k] = 0.5f;
    add_floats(graph, "halves", picks, dim, 0);
    free(picks);
    return 0;
}

/* Adds the scores, as "scores". */
static int add_scores(struct protobuf *graph, const struct drps_model *m, const float *intercept,
                      struct drps_err *err)
{
    const int pairs = m->factors > 0;
    int rc = 0;
    add_axis(graph, "axis1", 1);
    add_axis(graph, "axis2", 2);
    add_floats(graph, "intercept", intercept, m->outputs, m->outputs == 1);
    add_node(graph, "Gather", "rows", "ids", "gathered", "axis", 0);
    add_node(graph, "Unsqueeze", "values", "axis2", "factors", NULL, 0);
    add_node(graph, "Mul", "gathered", "factors", "weighted", NULL, 0);
    add_node(graph, "ReduceSum", "weighted", "axis1", "sums", "keepdims", 0);
    if (pairs) {
        rc = add_picks(graph, m->dim, err);
        add_node(graph, "Mul", "weighted", "weighted", "squares", NULL, 0);
        add_node(graph, "ReduceSum", "squares", "axis1", "sum_of_squares", "keepdims", 0);
        add_node(graph, "Mul", "sums", "sums", "square_of_sums", NULL, 0);
        add_node(graph, "Sub", "square_of_sums", "sum_of_squares", "products", NULL, 0);
        add_node(graph, "MatMul", "products", "halves", "pairs", NULL, 0);
        add_node(graph, "MatMul", "sums", "first", "weights", NULL, 0);
        add_node(graph, "Add", "weights", "pairs", "linear", NULL, 0);
    } else if (m->outputs == 1) {
        add_node(graph, "Squeeze", "sums", "axis1", "linear", NULL, 0);
    }
    add_node(graph, "Add", pairs || m->outputs == 1 ? "linear" : "sums", "intercept", "scores",
             NULL, 0);
    return rc;
}

/* Adds what prediction makes of scores. Returns the name of the output. */
static const char *add_answer(struct protobuf *graph, const struct drps_modeldir_info *info)
{
    const struct drps_model *m = &info->model;
    const float a = (float)-info->calibration.a, b = (float)-info->calibration.b;
    const int calibrated = info->calibration.kind == DRPS_CALIBRATION_PLATT;
    if (m->loss == DRPS_LOSS_SOFTMAX) {
        add_node(graph, "Softmax", "scores", NULL, "probabilities", "axis", 1);
        return "probabilities";
    }
    if (m->loss != DRPS_LOSS_LOGISTIC && !calibrated) return "scores";
    if (calibrated) {
        add_floats(graph, "slope", &a, 1, 1);
        add_floats(graph, "shift", &b, 1, 1);
        add_node(graph, "Mul", "scores", "slope", "scaled", NULL, 0);
        add_node(graph, "Add", "scaled", "shift", "log_odds", NULL, 0);
    }
    add_node(graph, "Sigmoid", calibrated ? "log_odds" : "scores", NULL, "probability", NULL, 0);
    return "probability";
}

static int check(const struct exporter *e, struct drps_err *err)
{
    const struct drps_model *m = &e->info->model;
    const enum drps_scoring p = predictor_of(m);
    if (p == DRPS_PREDICTOR_FFM || p == DRPS_PREDICTOR_TOPIC || p == DRPS_PREDICTOR_NET)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is of algorithm %s, which is not exported as ONNX: text, csv and "
                            "npy have its parameters",
                            e->o->model, drps_algo_name(m->algo));
    if (e->info->calibration.kind == DRPS_CALIBRATION_ISOTONIC)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is calibrated by isotonic regression, which is not exported as "
                            "ONNX: calibrate it by platt, or not",
                            e->o->model);
    return 0;
}

/* Adds the names of classes in their order, a line each. */
static int add_classes(struct protobuf *model, const struct drps_classes *classes,
                       struct drps_err *err)
{
    struct protobuf entry = {.n = 0};
    const size_t n = drps_classes_count(classes);
    char *text = n ? drps_array_new(n, DRPS_CLASS_NAME_BYTES + 1) : NULL, *at = text;
    if (!n) return 0;
    if (!text) return drps_err_set(err, -ENOMEM, "no memory for %zu classes", n);
    for (size_t i = 0; i < n; i++) {
        const char *name = drps_classes_name(classes, i);
        memcpy(at, name, strlen(name));
        at += strlen(name);
        *at++ = '\n';
    }
    protobuf_text(&entry, ENTRY_KEY, "classes");
    protobuf_bytes(&entry, ENTRY_VALUE, text, (size_t)(at - text));
    protobuf_message(model, MODEL_METADATA, &entry);
    free(text);
    return 0;
}

static int add_graph(struct exporter *e, struct protobuf *graph, const float *intercept,
                     struct drps_err *err)
{
    const struct drps_model *m = &e->info->model;
    int rc = add_scores(graph, m, intercept, err);
    const char *output = add_answer(graph, e->info);
    protobuf_text(graph, GRAPH_NAME, "drps");
    add_value(graph, GRAPH_INPUT, "ids", INT64, "entries", 0);
    add_value(graph, GRAPH_INPUT, "values", FLOAT32, "entries", 0);
    add_value(graph, GRAPH_OUTPUT, output, FLOAT32, NULL, m->outputs > 1 ? m->outputs : 0);
    return rc;
}

/* Makes everything in front of the rows: `rows` [features][dim] is the last tensor of the graph,
 * which is the last member of the model. */
static int make_head(struct exporter *e, struct protobuf *model, const float *intercept,
                     struct drps_err *err)
{
    const struct drps_model *m = &e->info->model;
    const uint64_t features = e->rows - (uint64_t)(m->has_bias != 0);
    const uint64_t bytes = drps_product(drps_product(features, m->dim), sizeof(float));
    struct protobuf opset = {.n = 0}, graph = {.n = 0}, tensor = {.n = 0}, head = {.n = 0};
    int rc = add_graph(e, &graph, intercept, err);
    begin_tensor(&tensor, "rows", FLOAT32, features, m->dim);
    protobuf_head(&tensor, TENSOR_RAW, bytes);
    protobuf_head(&head, GRAPH_INITIALIZER, tensor.n + bytes);
    protobuf_number(model, MODEL_IR_VERSION, IR_VERSION);
    protobuf_text(model, MODEL_PRODUCER, "drps");
    protobuf_text(model, MODEL_PRODUCER_VERSION, DRPS_VERSION);
    protobuf_number(&opset, OPSET_VERSION, OPERATOR_SET);
    protobuf_message(model, MODEL_OPSET, &opset);
    if (rc == 0) rc = add_classes(model, e->info->classes, err);
    protobuf_head(model, MODEL_GRAPH, graph.n + head.n + tensor.n + bytes);
    model->failed |= graph.failed | head.failed | tensor.failed;
    protobuf_append(model, &graph);
    protobuf_append(model, &head);
    protobuf_append(model, &tensor);
    if (rc == 0 && model->failed) rc = drps_err_set(err, -ENOMEM, "no memory for an ONNX graph");
    if (rc == 0 && drps_sum(model->n, bytes) >= FILE_MOST)
        rc = drps_err_set(err, DRPS_E_CONFIG,
                          "%s has %llu bytes of parameters, and an ONNX file has less than 2 GiB: "
                          "export it as npy",
                          e->o->model, (unsigned long long)bytes);
    return rc;
}

static int onnx_begin(struct exporter *e, struct drps_err *err)
{
    const struct drps_model *m = &e->info->model;
    const uint32_t row = 0;
    struct protobuf model = {.n = 0};
    int rc = check(e, err);
    if (rc < 0) return rc;
    float *intercept = calloc(m->dim, sizeof(*intercept));
    if (!intercept) rc = drps_err_set(err, -ENOMEM, "no memory for the intercept");
    if (rc == 0 && m->has_bias) rc = drps_modeldir_gather(e->r.md, &row, 1, intercept, err);
    if (rc == 0) rc = make_head(e, &model, intercept, err);
    if (rc == 0) rc = drps_textfile_put(&e->out, model.data, model.n, err);
    free(model.data);
    free(intercept);
    return rc;
}

static int onnx_row(void *ctx, const struct drps_readout_row *row, struct drps_err *err)
{
    struct exporter *e = ctx;
    if (e->info->model.has_bias && row->row == 0) return 0; /* it is in the graph */
    return export_npy.row(e, row, err);
}

const struct export_kind export_onnx = {
    .name = "onnx", .end = ".onnx", .has_names = 1, .begin = onnx_begin, .row = onnx_row};
