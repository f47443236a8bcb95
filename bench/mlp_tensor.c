/* A small network with its weights in tensors; the gradient of the squared error over a batch by all weights. */
#include "mlp.h"

int main(int argc, char **argv) { return run_network("mlp_tensor.slang", argc, argv); }
