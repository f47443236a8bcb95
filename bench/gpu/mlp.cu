/* A small network with its weights in a buffer. */
#include "mlp.h"

int main() { return run_network("mlp", slope::network_set); }
