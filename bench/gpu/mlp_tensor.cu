/* A small network with its weights in tensors, which are parts of a buffer. */
#include "mlp.h"

int main() { return run_network("mlp_tensor", slope::networks_set); }
