#include "tilewright/driver/cli.h"

int main(int argc, char** argv) { return tilewright::driver::run_cli(argc, argv); }
