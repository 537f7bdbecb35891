/* Run the packaged model `mnist`: `unzip mnist.lwm`, `cc main.c model.o -lm`, then
   `./a.out weights.bin < image`, which reads float32 elements and prints the outputs. */
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

/* Memory at a multiple of the alignment, as the arena, the weights and the workspace require. */
static void *allocate(size_t size)
{
    void *memory = aligned_alloc(MNIST_ALIGNMENT, (size / MNIST_ALIGNMENT + 1) * MNIST_ALIGNMENT);
    if (memory == NULL) {
        perror("out of memory");
        exit(1);
    }
    return memory;
}

static void read_all(FILE *file, void *memory, size_t size, const char *name)
{
    if (file == NULL || fread(memory, 1, size, file) != size) {
        fprintf(stderr, "%s does not have %zu bytes\n", name, size);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s weights.bin < input\n", argv[0]);
        return 1;
    }
    void *weights = allocate(MNIST_WEIGHTS_BYTES);
    FILE *file = fopen(argv[1], "rb");
    read_all(file, weights, MNIST_WEIGHTS_BYTES, argv[1]);
    fclose(file);

    void *image = allocate(MNIST_INPUT_0_BYTES);
    read_all(stdin, image, MNIST_INPUT_0_BYTES, "the standard input");
    float *probabilities = allocate(MNIST_OUTPUT_0_BYTES);

    const void *inputs[MNIST_NUM_INPUTS] = {image};
    void *outputs[MNIST_NUM_OUTPUTS] = {probabilities};
    void *arena = allocate(MNIST_ARENA_BYTES), *workspace = allocate(MNIST_WORKSPACE_BYTES);
    mnist_run(inputs, outputs, arena, weights, workspace, 1, NULL);

    for (size_t i = 0; i < MNIST_OUTPUT_0_BYTES / sizeof *probabilities; i++)
        printf("%.9g\n", probabilities[i]);
    free(weights);
    free(image);
    free(probabilities);
    free(arena);
    free(workspace);
    return 0;
}
