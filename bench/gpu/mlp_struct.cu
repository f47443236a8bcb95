/* A small network with its weights in a struct. */
#include "mlp.h"

int main() { return run_network("mlp_struct", slope::networks_set); }
