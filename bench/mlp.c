/* A small network with its weights in arrays; the gradient of the squared error over a batch by all weights. */
#include "mlp.h"

int main(int argc, char **argv) { return run_network("mlp.slang", argc, argv); }
