/* TensorFlow in a loop; see bare.h. FILE is a GraphDef. */
#include "../../../backends/tensorflow/tf_api.h"
#include "bare.h"

struct network {
    struct bare bare;
    TF_Session *session;
    TF_Output input, output;
    TF_Tensor *value;
    TF_Status *status;
};

static void must(TF_Status *status)
{
    if (TF_GetCode(status) != TF_OK)
        bare_fail("TensorFlow", TF_Message(status));
}

static TF_Buffer *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        bare_fail(path, "cannot be read");
    size_t size = (size_t)ftell(file);
    char *content = malloc(size);
    rewind(file);
    if (!content || fread(content, 1, size, file) != size)
        bare_fail(path, "cannot be read");
    fclose(file);
    TF_Buffer *buffer = TF_NewBufferFromString(content, size);
    free(content);
    return buffer;
}

static void keep(void *data, size_t size, void *argument)
{
    (void)data, (void)size, (void)argument;
}

static float run(void *argument, int sums)
{
    struct network *network = argument;
    TF_Tensor *output = NULL;
    TF_SessionRun(network->session, NULL, &network->input, &network->value, 1, &network->output,
                  &output, 1, NULL, 0, NULL, network->status);
    must(network->status);
    size_t count = 1;
    for (int i = 0; i < TF_NumDims(output); i++)
        count *= (size_t)TF_Dim(output, i);
    float sum = sums ? bare_sum(TF_TensorData(output), count) : 0;
    TF_DeleteTensor(output);
    return sum;
}

int main(int count, char **arguments)
{
    struct network network = {.bare = bare_read_arguments(count, arguments),
                              .status = TF_NewStatus()};
    /* ConfigProto: intra_op_parallelism_threads (2) = 1, inter_op_parallelism_threads (5) = -1, the thread that calls. */
    static const unsigned char config[] = {2 << 3, 1,   5 << 3, 255, 255, 255, 255,
                                           255,    255, 255,    255, 255, 1};
    TF_Graph *graph = TF_NewGraph();
    TF_GraphImportGraphDef(graph, read_file(network.bare.file), TF_NewImportGraphDefOptions(),
                           network.status);
    must(network.status);
    TF_SessionOptions *options = TF_NewSessionOptions();
    TF_SetConfig(options, config, sizeof config, network.status);
    must(network.status);
    network.session = TF_NewSession(graph, options, network.status);
    must(network.status);
    network.input.oper = TF_GraphOperationByName(graph, network.bare.input);
    network.output.oper = TF_GraphOperationByName(graph, network.bare.output);
    if (!network.input.oper || !network.output.oper)
        bare_fail(network.bare.file, "has no such input or output");
    network.value = TF_NewTensor(TF_FLOAT, network.bare.dims, (int)network.bare.rank,
                                 network.bare.values, network.bare.size, keep, NULL);
    bare_loop(run, &network);
}
